"""Runs side by side: worker processes on one machine, several GPUs, or several machines through a shared folder."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from ..data.errors import DataError
from .material import Place, load
from .measurements import Measurement, hashes, take
from .runs import EXPECTED_FAILURES, Run, Stopped, execute, failure, satisfies
from .store import Claim, Store

POLL = 2.0  # seconds between looks at what others are doing
MEASURING = "measuring"  # one claim for all that is measured: two at once would slow each other down
Say = Callable[[str], None]


@dataclass(frozen=True)
class Crew:
    """How the work is shared out. jobs: processes on this machine, or of each process that torchrun started.
    local_rank: which of those this is; it takes the GPUs from there on."""

    jobs: int = 1
    place: Place = field(default_factory=Place)
    local_rank: int = 0


def leave_group() -> tuple[int, int]:
    """Rank and local rank under torchrun, 0 otherwise. Its variables are taken back: here every run belongs to one
    process, and the processes share the runs through the folder, where training would share each batch."""
    rank, local_rank = (int(os.environ.pop(name, 0)) for name in ("RANK", "LOCAL_RANK"))
    os.environ.pop("WORLD_SIZE", None)
    return rank, local_rank


def run_all(runs: Sequence[Run], folder: Path, crew: Crew, say: Say = print) -> list[Run]:
    """Execute what is not finished; returns the runs that could not be finished, here or elsewhere."""
    runs = list(
        {run.key(): run for run in sorted(runs, key=lambda run: run.test)}.values()
    )  # with test goes before without
    store = Store(folder)
    check_same_data(runs, store, crew.place)
    waiting, failed_before = unfinished(runs, store), store.failures.copy()
    say(f"{len(runs)} runs, {len(runs) - len(waiting)} of them finished before; results go to {store.path}")
    jobs = min(crew.jobs, len(waiting))
    with terminated_as_by_ctrl_c():
        while waiting:
            if jobs > 1:
                work_side_by_side(runs, folder, crew, failed_before, jobs)
            else:
                place = replace(crew.place, device=device_of(crew.place.device, crew.local_rank))
                work(runs, folder, place, failed_before, say)
            if not wait_for_others(runs, store):
                break
            waiting = [run for run in runs if is_to_do(run, store, failed_before)]  # what the others left behind
    return unfinished(runs, store)


def check_same_data(runs: Sequence[Run], store: Store, place: Place) -> None:
    """A run is known by the names of its data and vectors: what was finished with others of these names is not ours.
    All that the runs need is read here, so that what is wrong with it is said before anything is trained."""
    hashes = {data: load(data, place).hashes for data in dict.fromkeys(run.data for run in runs)}
    records = store.records()
    for run in runs:
        record = records.get(run.key())
        if record is None or not satisfies(record, run) or record["data"] == hashes[run.data]:
            continue
        ours, theirs = hashes[run.data], record["data"]
        parts = ", ".join(part for part in {**ours, **theirs} if ours.get(part) != theirs.get(part))
        raise DataError.at(
            store.folder,
            f"finished runs of {run.data.name} with vectors {run.vectors!r} were made with other data or vectors "
            f"({parts}); --out names another folder",
        )


def unfinished(runs: Sequence[Run], store: Store) -> list[Run]:
    records = store.records()
    return [run for run in runs if not satisfies(records.get(run.key()), run)]


def is_to_do(run: Run, store: Store, failed_before: Counter[str]) -> bool:
    """Whether a run is neither finished nor failed more often than before this command."""
    record = store.records().get(run.key())
    return not satisfies(record, run) and store.failures[run.key()] <= failed_before[run.key()]


def work_side_by_side(runs: Sequence[Run], folder: Path, crew: Crew, failed_before: Counter[str], jobs: int) -> None:
    """`jobs` processes that share nothing but the folder; each GPU gets its share of them. What dies is replaced, up to
    `jobs` times in all."""
    context = multiprocessing.get_context("spawn")

    def start(number: int) -> BaseProcess:
        place = replace(crew.place, device=device_of(crew.place.device, crew.local_rank + number))
        worker = context.Process(target=work_as_process, args=(list(runs), folder, place, failed_before, jobs))
        worker.start()
        return worker

    workers, replacements = {number: start(number) for number in range(jobs)}, jobs
    try:
        while workers:
            ended = connection.wait([worker.sentinel for worker in workers.values()])
            for number, worker in [(n, worker) for n, worker in workers.items() if worker.sentinel in ended]:
                worker.join()
                del workers[number]
                if worker.exitcode and replacements:
                    time.sleep(POLL)  # what it died of may pass
                    workers[number], replacements = start(number), replacements - 1
    except BaseException:
        for worker in workers.values():
            worker.terminate()
        raise


def work_as_process(runs: list[Run], folder: Path, place: Place, failed_before: Counter[str], jobs: int) -> None:
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // jobs))
    try:
        work(runs, folder, place, failed_before, lambda line: print(line, flush=True), jobs)
    except KeyboardInterrupt:
        return
    except DataError as error:  # of a set that was in order when its parent read it
        print(f"error: {error}", file=sys.stderr, flush=True)


def is_orphan() -> bool:
    """Whether this is a worker and the process that started it is gone."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


@contextmanager
def terminated_as_by_ctrl_c() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does, which ends the workers too; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        on_ctrl_c = signal.getsignal(signal.SIGINT)
        if not callable(on_ctrl_c):  # a shell lets what it starts in the background ignore Ctrl-C
            raise KeyboardInterrupt
        on_ctrl_c(number, frame)

    before = signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def device_of(device: str, number: int) -> str:
    """The device of the worker with this number."""
    return f"cuda:{number % torch.cuda.device_count()}" if device == "cuda" else device


def work(runs: Sequence[Run], folder: Path, place: Place, failed_before: Counter[str], say: Say, jobs: int = 1) -> None:
    """Execute, one after another, every run that is neither finished nor claimed, nor failed since `failed_before` was
    counted. jobs: so many processes do that side by side, which is to be known of the seconds that a run took."""
    store = Store(folder)
    if torch.device(place.device).index is not None:
        torch.cuda.set_device(place.device)
    for run in runs:
        if is_orphan():
            return
        if not is_to_do(run, store, failed_before):
            continue
        claim = store.claim(run.key())
        if claim is None:
            continue
        with claim:
            if not is_to_do(run, store, failed_before):  # finished between the question and the claim
                continue
            try:
                record = execute(run, place)
            except Stopped:
                raise KeyboardInterrupt from None
            except EXPECTED_FAILURES as error:
                record = failure(run, error)
            store.append(record | {"jobs": jobs})
        give_memory_back()
        say(f"{progress(runs, store)} {run.title()}: {summary(record)}")


def give_memory_back() -> None:
    """A loop and its CUDA graphs hold each other, and with them the memory of the run."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def measure_all(measurements: Sequence[Measurement], folder: Path, place: Place, say: Say = print) -> None:
    """Take what was not taken yet on this kind of device, one after another, with no worker beside it, and nobody else
    who measures into this folder."""
    store = Store(folder)
    measurements = [one.on(place.device) for one in measurements]
    check_same_sets(measurements, store, place)
    for measurement in measurements:
        if measurement.key() in store.records():
            continue
        with wait_for_claim(MEASURING, store):
            if measurement.key() in store.records():  # taken by another while this one waited
                continue
            store.append(take(measurement, place))
        give_memory_back()
        say(measurement.title())


def check_same_sets(measurements: Sequence[Measurement], store: Store, place: Place) -> None:
    """As `check_same_data` for runs. Lines from before hashes were kept say nothing about it, and count."""
    records = store.records()
    for measurement in measurements:
        record = records.get(measurement.key(), {})
        if "hashes" not in record:
            continue
        for data, ours, theirs in zip(measurement.data, hashes(measurement, place), record["hashes"], strict=True):
            if parts := ", ".join(part for part in ours if ours[part] != theirs[part]):
                raise DataError.at(
                    store.folder,
                    f"finished measurements of {data.name} were made with other data ({parts}); "
                    "--out names another folder",
                )


def wait_for_claim(key: str, store: Store) -> Claim:
    while (claim := store.claim(key)) is None:
        time.sleep(POLL)
    return claim


def wait_for_others(runs: Sequence[Run], store: Store) -> bool:
    """Until nobody works on any of these runs any more; False where nobody did."""
    waited = False
    while any(store.is_claimed(run.key()) for run in unfinished(runs, store)):
        waited = True
        time.sleep(POLL)
    return waited


def progress(runs: Sequence[Run], store: Store) -> str:
    return f"[{len(runs) - len(unfinished(runs, store))}/{len(runs)}]"


def summary(record: dict[str, Any]) -> str:
    if "error" in record:
        return f"failed: {record['error']}"
    scores = [f"{name} {100 * record[name]['score']:.2f}" for name in ("dev", "test") if name in record]
    epochs = f"best epoch {record['best_epoch']} of {len(record['history'])}"
    return f"{', '.join(scores)}, {epochs}, {record['seconds']:.0f} s"
