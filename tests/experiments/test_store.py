import errno
import json
import os
import subprocess
import sys
import threading

import pytest

from sentence_state.experiments import store as store_module
from sentence_state.experiments.store import CLAIMS, Store


def record(key, **fields):
    return {"key": key, **fields}


def test_lines_that_were_added_are_read_by_everybody(tmp_path):
    first, second = Store(tmp_path), Store(tmp_path)
    assert second.records() == {}
    first.append(record("a", score=1))
    assert second.records() == {"a": record("a", score=1)}
    second.append(record("b", score=2))
    assert first.records().keys() == {"a", "b"}


def test_half_a_line_of_a_killed_process_spoils_no_other(tmp_path):
    store = Store(tmp_path)
    store.append(record("a"))
    with open(store.path, "ab") as file:
        file.write(b'{"key": "b", "sco')
    assert Store(tmp_path).records().keys() == {"a"}
    store.append(record("c"))
    assert store.records().keys() == Store(tmp_path).records().keys() == {"a", "c"}


def test_a_whole_last_line_without_its_newline_counts_and_the_next_begins_on_a_new_one(tmp_path):
    store = Store(tmp_path)
    store.append(record("a"))
    with open(store.path, "ab") as file:  # as an editor leaves it
        file.write(json.dumps(record("b", error="the loss is nan")).encode())
    assert store.records().keys() == Store(tmp_path).records().keys() == {"a", "b"}
    store.append(record("c"))
    assert store.records().keys() == Store(tmp_path).records().keys() == {"a", "b", "c"}
    assert [json.loads(line)["key"] for line in store.path.read_text().splitlines()] == ["a", "b", "c"]
    assert store.failures["b"] == 1


def test_a_line_is_read_once_whatever_of_it_is_there_when_somebody_looks(tmp_path):
    store = Store(tmp_path)
    line = json.dumps(record("é", run={"key": "inner"}, error="}"), ensure_ascii=False).encode() + b"\n"
    with open(store.path, "ab", buffering=0) as file:
        for place in range(len(line)):
            file.write(line[place : place + 1])
            assert len(store.records()) == (place >= len(line) - 2)  # the newline may come later
    store.append(record("a"))
    assert store.records() == Store(tmp_path).records() == {"é": json.loads(line), "a": record("a")}
    assert store.failures["é"] == 1


def test_a_failure_never_hides_a_result(tmp_path):
    store = Store(tmp_path)
    store.append(record("a", error="the loss is nan"))
    store.append(record("a", score=1))
    store.append(record("a", error="out of memory"))
    assert store.records()["a"] == Store(tmp_path).records()["a"] == record("a", score=1)


def test_a_line_without_test_scores_never_hides_one_with_them(tmp_path):
    store = Store(tmp_path)
    store.append(record("a", dev=1, test=2))
    store.append(record("a", dev=1))  # of another machine, put into the same file
    assert store.records()["a"] == Store(tmp_path).records()["a"] == record("a", dev=1, test=2)
    store.append(record("a", dev=3, test=4))
    assert store.records()["a"] == record("a", dev=3, test=4)


def test_machines_with_the_same_process_number_ask_for_the_time_at_once(tmp_path):
    store, other = Store(tmp_path), Store(tmp_path)
    times = []

    def ask(stopped):
        while not stopped.is_set():
            other.now()

    stopped = threading.Event()
    thread = threading.Thread(target=ask, args=(stopped,))
    thread.start()
    try:
        times = [store.now() for _ in range(2000)]
    finally:
        stopped.set()
        thread.join()
    assert times == sorted(times)
    assert list((tmp_path / CLAIMS).iterdir()) == []


def test_a_claim_keeps_others_away_until_it_is_given_back(tmp_path):
    store = Store(tmp_path)
    with store.claim("a") as claim:
        assert claim
        assert Store(tmp_path).claim("a") is None
        assert store.is_claimed("a")
        with store.claim("b"):
            pass
    assert not store.is_claimed("a")
    with store.claim("a"):
        pass


def test_the_claim_of_a_dead_process_of_this_machine_is_taken_over_at_once(tmp_path):
    code = f"import os; from pathlib import Path; from sentence_state.experiments.store import Store; \
        Store(Path({str(tmp_path)!r})).claim('a'); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert (tmp_path / CLAIMS / "a").exists()
    with Store(tmp_path).claim("a") as claim:
        assert claim


@pytest.mark.parametrize(("age", "free"), [(0, False), (store_module.EXPIRY + 5, True)])
@pytest.mark.parametrize("machine", ["elsewhere", store_module.host()])  # here: the number went to another process
def test_a_claim_that_is_no_longer_touched_is_taken_over(tmp_path, age, free, machine):
    store = Store(tmp_path)
    path = tmp_path / CLAIMS / "a"
    path.write_text(json.dumps({"host": machine, "pid": os.getpid()}))
    os.utime(path, (store.now() - age, store.now() - age))
    assert store.is_claimed("a") is not free
    claim = store.claim("a")
    assert (claim is not None) is free
    if claim:
        with claim:
            pass


def test_a_claim_is_touched_while_it_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "HEARTBEAT", 0.05)
    store = Store(tmp_path)
    with store.claim("a") as claim:
        os.utime(claim.path, (0, 0))
        for _ in range(100):
            if claim.path.stat().st_mtime > 0:
                break
            claim.over.wait(0.05)
        assert claim.path.stat().st_mtime > 0


def test_a_claim_is_touched_again_after_the_folder_was_away(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "HEARTBEAT", 0.01)
    touched, beats = os.utime, []

    def utime(*arguments):
        beats.append(arguments)
        if len(beats) == 1:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        touched(*arguments)

    monkeypatch.setattr(os, "utime", utime)
    with Store(tmp_path).claim("a") as claim:
        for _ in range(500):
            if len(beats) > 1:
                break
            claim.over.wait(0.01)
        assert claim.thread.is_alive()
    assert len(beats) > 1
