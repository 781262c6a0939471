"""A server as a process of its own, and clients that cost it little: one connection each, one request after another."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Answers:
    """Seconds of every request by its status."""

    seconds: dict[int, list[float]] = field(default_factory=dict)
    elapsed: float = 0.0

    def add(self, status: int, seconds: float) -> None:
        self.seconds.setdefault(status, []).append(seconds)

    def count(self, status: int) -> int:
        return len(self.seconds.get(status, []))

    def quantile(self, share: float) -> float:
        """Seconds within which this share of the answers came."""
        ordered = sorted(self.seconds.get(200, [0.0]))
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass
class RunningServer:
    process: subprocess.Popen[str]
    port: int

    def memory(self, name: str = "VmRSS") -> float:
        """MiB; VmHWM is the most there ever was."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(rf"{name}:\s+(\d+) kB", status)[0]) / 1024

    def load(self, clients: int, seconds: float, body: Callable[[int], bytes]) -> Answers:
        return asyncio.run(load(self.port, clients, seconds, body))

    def metric(self, name: str) -> float:
        """The sum over all labels."""
        text = asyncio.run(get(self.port, "/metrics"))
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + "{"))


@contextmanager
def serving(run: Path, *flags: str) -> Iterator[RunningServer]:
    command = [sys.executable, "-m", "sentence_state", "serve", str(run), "--port", "0", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"})
    assert process.stderr is not None
    said = ""
    try:
        for line in process.stderr:
            said += line
            if found := re.search(r"http://[\d.]+:(\d+)", line):
                yield RunningServer(process, int(found[1]))
                return
        raise SystemExit(f"the server did not start: {said}")
    finally:
        process.terminate()
        process.communicate()


def predict_body(texts: list[str]) -> bytes:
    return request("/v1/predict", json.dumps({"texts": texts}).encode())


def request(path: str, content: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    )
    return head.encode() + b"\r\n\r\n" + content


async def load(port: int, clients: int, seconds: float, body: Callable[[int], bytes]) -> Answers:
    """`clients` at a time for `seconds`; body(n) is the n-th request of all."""
    answers, numbers = Answers(), iter(range(sys.maxsize))
    start = time.perf_counter()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() - start < seconds:
            sent = time.perf_counter()
            writer.write(body(next(numbers)))
            status, _ = await read_answer(reader)
            answers.add(status, time.perf_counter() - sent)
            if status == 429:
                await asyncio.sleep(0.25)  # a client that is told to wait a second, and does not
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    answers.elapsed = time.perf_counter() - start
    return answers


async def get(port: int, path: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    _, content = await read_answer(reader)
    writer.close()
    return content.decode()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(re.findall(rb"content-length: (\d+)", head)[0])
    return int(head[9:12]), await reader.readexactly(length)
