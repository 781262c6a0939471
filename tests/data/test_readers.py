"""Processes that read ahead give what reading here gives, in the same order, errors too."""

import gc
import os
import signal
import threading
import time

import pytest

from sentence_state.data import collection, readers
from sentence_state.data.collection import no_collection
from sentence_state.data.errors import DataError
from sentence_state.data.readers import Reader, Readers, cores


def double(number):
    print("said to nobody")
    if number == 13:
        raise DataError.at("file", "thirteen", number)
    return 2 * number, os.getpid()


@pytest.fixture(scope="module")
def two():
    return Readers(2)


def test_results_come_in_the_order_of_the_tasks_from_several_processes(two):
    found = list(two.map(double, range(12), 5))
    assert [task for task, _ in found] == list(range(12))
    assert [number for _, (number, _) in found] == list(range(0, 24, 2))
    assert 1 <= len({process for _, (_, process) in found} - {os.getpid()}) <= 2


def test_only_so_many_tasks_are_begun_before_they_are_asked_for(two):
    asked = []
    results = two.map(double, (asked.append(task) or task for task in range(100)), 4)
    next(results)
    next(results)
    assert asked == list(range(5))


def test_an_error_comes_after_the_results_before_it(two):
    results = two.map(double, range(11, 20), 5)
    assert [next(results)[0] for _ in range(2)] == [11, 12]
    with pytest.raises(DataError, match=r"^file:13: thirteen$"):
        next(results)

    def cut():
        yield 13
        raise DataError("cut later")

    with pytest.raises(DataError, match="thirteen"):
        list(two.map(double, cut(), 5))
    with pytest.raises(DataError, match="cut later"):
        list(two.map(str, (task for task in cut() if task), 5))


def test_a_process_that_dies_is_told():
    with pytest.raises(ChildProcessError, match="a process that reads files ended with code 3"):
        list(Readers(1).map(os._exit, [3], 1))


def test_ctrl_c_is_for_the_process_that_asks():
    reader = Reader()
    assert reader.ask(str, 1) == "1"
    reader.process.send_signal(signal.SIGINT)
    assert reader.ask(str, 2) == "2"


def test_processes_end_with_who_asks_them():
    some = Readers(2)
    list(some.map(str, range(4), 4))
    processes = [some.idle.get(), some.idle.get()]
    processes = [reader.process for reader in processes]
    del some
    gc.collect()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(process.poll() is None for process in processes):
        time.sleep(0.05)
    assert [process.returncode for process in processes] == [0, 0]


def test_processes_that_train_together_share_the_cores(monkeypatch):
    monkeypatch.setattr(readers.os, "sched_getaffinity", lambda process: set(range(16)), raising=False)
    assert cores() == 16
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    assert cores() == 2


def test_collection_waits_for_the_last_thread_that_puts_it_off():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with no_collection():
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=other)
    assert gc.isenabled()
    with no_collection():
        thread.start()
        inside.wait(20)
    assert not gc.isenabled()
    leave.set()
    thread.join(20)
    assert gc.isenabled()
    assert collection.depth == 0
