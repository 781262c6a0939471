"""Processes that read ahead: one core cuts text into words more slowly than a GPU learns from them."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import IO, TypeVar

from .collection import no_collection
from .errors import DataError

MOST = 6  # processes: one that trains can hardly take more than they read
Task = TypeVar("Task")
Result = TypeVar("Result")


def cores() -> int:
    """Of this process, where several train together on this machine."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return available // int(os.environ.get("LOCAL_WORLD_SIZE", 1))


class Readers:
    """`function` and what it is given travel to the processes, results back. They begin with the first task."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.threads: ThreadPoolExecutor | None = None  # one for each process, which waits for it
        self.idle: queue.SimpleQueue[Reader] = queue.SimpleQueue()

    def map(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], ahead: int
    ) -> Iterator[tuple[Task, Result]]:
        """Tasks and their results in the order of the tasks, of which so many are begun before they are asked for."""
        if self.threads is None:
            self.threads = ThreadPoolExecutor(self.number)
            for _ in range(self.number):
                self.idle.put(Reader())
        waiting: deque[tuple[Task, Future[Result]]] = deque()
        remaining, failure = iter(tasks), None
        try:
            while True:
                try:
                    for task in islice(remaining, ahead - len(waiting)):
                        waiting.append((task, self.threads.submit(self.ask, function, task)))
                except DataError as error:  # what comes before it in the files is said first
                    remaining, failure = iter(()), error
                if not waiting:
                    break
                task, future = waiting.popleft()
                yield task, future.result()
        finally:
            for _, future in waiting:
                future.cancel()
        if failure is not None:
            raise failure

    def ask(self, function: Callable[[Task], Result], task: Task) -> Result:
        reader = self.idle.get()
        try:
            return reader.ask(function, task)
        finally:
            self.idle.put(reader)


class Reader:
    """A process that answers one task after another. It ends when nobody can ask it any more."""

    def __init__(self) -> None:
        # Not by multiprocessing, whose children run the user's script again. Nor does it need torch.
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import answer; answer()"
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        weakref.finalize(self, end, self.process)

    def ask(self, function: Callable[[Task], Result], task: Task) -> Result:
        try:
            send(self.process.stdin, (function, task))
            answered = receive(self.process.stdout)
        except OSError:
            answered = None
        if answered is None:
            code = self.process.wait()
            raise ChildProcessError(
                f"a process that reads files ended with code {code} (-9: killed, for want of memory?)"
            )
        with no_collection():
            result, error = pickle.loads(answered)
        if error is not None:
            raise error
        found: Result = result
        return found


def send(stream: IO[bytes] | None, message: object) -> None:
    assert stream is not None
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(len(content).to_bytes(8, "little") + content)
    stream.flush()


def receive(stream: IO[bytes] | None) -> bytes | None:
    """A message that is still to be unpickled; None at the end."""
    assert stream is not None
    size = stream.read(8)
    content = stream.read(int.from_bytes(size, "little"))
    return content if size else None


def end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # what is left of a question that it did not live to hear
                stream.close()
    process.wait()


def answer() -> None:
    """What such a process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed does not go among the answers
    while question := receive(sys.stdin.buffer):
        function, task = pickle.loads(question)
        result = failure = None
        with no_collection():
            try:
                result = function(task)
            except Exception as error:
                failure = error
            try:
                send(output, (result, failure))
            except BrokenPipeError:
                os._exit(1)
