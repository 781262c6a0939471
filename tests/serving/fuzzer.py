"""Hostile requests by the thousand, over sockets of its own: whatever comes, the answer must be a documented one.

    python -m tests.serving.fuzzer --requests 8000 --examples 1000

starts a server with a small model, sends them, has schemathesis make 1,000 more for each operation, and prints how each
kind was answered.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException, HTTPResponse
from typing import NamedTuple

DOCUMENTED = {
    "/v1/predict": {200, 404, 408, 413, 415, 422, 429, 500, 503},
    "/v1/trace": {200, 404, 408, 413, 415, 422, 429, 500, 503},
}
NOT_OURS = {404, 405}  # other paths and methods
NO_HTTP = {200, 400, 404, 405, 415, 422, 431, None}  # what is no HTTP may also be hung up on
FAMILY, ARABIC = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u0645\u0631\u062d\u0628\u0627"
WORDS = ["play", "jazz", "", "\x00", "\u202e", FAMILY, "e\u0301\u0301", "\ufeff", "<b>", "'", "n't", "www.", "a@b", "-",
         ARABIC, "9" * 50, "\uffff", "\x7f", "\u2028"]  # fmt: skip
TYPES = ["", "text/plain", "application/xml", "application/json;charset=utf-16", "multipart/form-data", "\xe9", ";;"]
PATHS = ["/v1/predict/", "/v1", "/page/../../etc/passwd", "/page/%2e%2e/app.py", "/page/__init__.py", "//", "/%00",
         "/aaaaaaaaaa", "/" + "a" * 8000, "/v1/predict?x=" + "b" * 2000, "/v1/trace/x"]  # fmt: skip


class Request(NamedTuple):
    kind: str
    content: bytes  # all of it: line, headers, body
    allowed: set[int | None]
    json: bool  # whether the answer must be JSON


class Wrong(NamedTuple):
    """An answer that is not documented, with the request that brought it about."""

    kind: str
    answer: str
    request: bytes


# ---- texts and bodies ---------------------------------------------------------------------------


def odd_text(r: random.Random) -> str:
    kind = r.randrange(9)
    if kind == 0:
        return " ".join(r.choices(WORDS, k=r.randrange(12)))
    if kind == 1:
        return "".join(
            chr(r.choice([r.randrange(32), r.randrange(0xD800), r.randrange(0xE000, 0x110000)])) for _ in range(9)
        )
    if kind == 2:
        return r.choice(WORDS) * r.choice([1, 100, 5000])
    if kind == 3:
        return "word " * r.choice([1, 511, 512, 513, 20_000])
    if kind == 4:
        return "x" * r.choice([1000, 100_000, 1_000_000])
    if kind == 5:
        return "".join(r.choices("ab'’-.@:/#0123 \t\n&", k=r.choice([20, 3000])))
    if kind == 6:
        return "\u202e".join(r.choices(["שלום", "مرحبا", "abc", "\u2066"], k=6))
    if kind == 7:
        return "\U0001f600\ufe0f\U0001f3fd" * r.choice([1, 300])
    return "play some jazz in the kitchen"


def odd_value(r: random.Random, depth: int = 0):
    kind = r.randrange(9 if depth < 4 else 6)
    values = [None, True, r.choice([0, -1, 10**30]), r.random() * 1e300, odd_text(r)[:200], "assistant"]
    if kind < 6:
        return values[kind]
    if kind == 6:
        return {odd_text(r)[:20]: odd_value(r, depth + 1) for _ in range(r.randrange(3))}
    return [odd_value(r, depth + 1) for _ in range(r.randrange(4))]


def shaped(r: random.Random, path: str) -> bytes:
    """A body of the right shape."""
    one = lambda: odd_text(r) if r.random() < 0.8 else r.choices(WORDS, k=r.randrange(1, 5))  # noqa: E731
    content = {"texts": [one() for _ in range(r.choice([1, 2, 5]))]} if path == "/v1/predict" else {"text": one()}
    if r.random() < 0.2:
        content["model"] = r.choice(["assistant", "labels", "spans", "none", "", None, "\x00", "../x"])
    return json.dumps(content, ensure_ascii=r.random() < 0.5).encode("utf-8", "surrogatepass")


def wrong_types(r: random.Random, path: str) -> bytes:
    field = "texts" if path == "/v1/predict" else "text"
    content = r.choice([odd_value(r), {field: odd_value(r)}, {field: [odd_value(r)]}, {field: "a", "x": odd_value(r)}])
    return json.dumps(content).encode()


def broken(r: random.Random, path: str) -> bytes:
    whole = shaped(r, path)[:5000]
    return r.choice(
        [
            whole[: r.randrange(len(whole))],
            whole + whole,
            b"\xef\xbb\xbf" + whole,
            whole.decode("utf-8", "replace").encode("utf-16"),
            b'{"texts": ["\\ud800"], "text": "\\udfff"}',
            b'{"texts": ["\xff\xfe"]}',
            b'{"texts": [NaN, Infinity, 1e999]}',
            b'{"texts": ["a"], "texts": ["b"], "text": "c"}',
            b'{"texts": ' + b"[" * r.choice([10, 1000, 100_000]),
            b'{"a":' * 50_000,
            b'"' + b"\\" * 999,
            r.randbytes(r.choice([0, 1, 100, 10_000])),
            b"\x00" * 1000,
            b"",
        ]
    )


def huge(r: random.Random, path: str) -> bytes:
    return b'{"texts": ["' + r.choice([b"a", b"a ", b"\xf0\x9f\x98\x80"]) * r.choice([500_000, 1_200_000]) + b'"]}'


# ---- whole requests -----------------------------------------------------------------------------


def wrapped(r: random.Random, method: str, path: str, body: bytes, kind: str = "application/json") -> bytes:
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
    if kind:
        head.append(f"Content-Type: {kind}")
    if r.random() < 0.3:  # chunked: no length
        head.append("Transfer-Encoding: chunked")
        size = r.choice([1000, 65_536]) if len(body) > 5000 else r.choice([1, 7, 1000])
        pieces = [body[i : i + size] for i in range(0, len(body), size)]
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def with_body(make: Callable[[random.Random, str], bytes]) -> Callable[[random.Random], Request]:
    def request(r: random.Random) -> Request:
        path = r.choice(list(DOCUMENTED))
        return Request(make.__name__, wrapped(r, "POST", path, make(r, path)), DOCUMENTED[path], True)

    return request


def wrong_content_type(r: random.Random) -> Request:
    kind = r.choice(TYPES)
    path = r.choice(list(DOCUMENTED))
    return Request("wrong content type", wrapped(r, "POST", path, shaped(r, path), kind), DOCUMENTED[path], True)


def wrong_path(r: random.Random) -> Request:
    method = r.choice(["GET", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD", "TRACE", "POST", "BREW"])
    path = r.choice(PATHS)
    allowed: set[int | None] = {*NOT_OURS, 307}
    if method == "POST" and path.startswith("/v1/predict?"):
        allowed |= DOCUMENTED["/v1/predict"]
    return Request("wrong path", wrapped(r, method, path, b"{}"), allowed, method != "HEAD")


def no_http(r: random.Random) -> Request:
    content = r.choice(
        [
            r.randbytes(300),
            b"GET / HTTP/9.9\r\n\r\n",
            b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{",
            b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
            b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
            b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc",
            b"GET /health HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
            b"GET /health HTTP/1.1\r\nHost: a\r\nX\x00: y\r\n\r\n",
            b"\r\n\r\n\r\n",
            b"",
        ]
    )
    return Request("no HTTP", content, NO_HTTP, False)


KINDS = [(with_body(shaped), 10), (with_body(wrong_types), 8), (with_body(broken), 8), (with_body(huge), 1),
         (wrong_content_type, 3), (wrong_path, 3), (no_http, 3)]  # fmt: skip


# ---- sending ------------------------------------------------------------------------------------


def send(host: str, port: int, content: bytes, hang_up: bool = False, timeout: float = 60) -> tuple[int | None, bytes]:
    """Status and body of the answer; None where the server hung up."""
    with socket.create_connection((host, port), timeout) as connection:
        try:
            connection.sendall(content)
            if hang_up:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it may have answered and hung up before all was sent
        answer = HTTPResponse(connection, method=content.split(b" ", 1)[0].decode("latin-1"))
        try:
            answer.begin()
            return answer.status, answer.read()
        except (HTTPException, OSError):
            return None, b""


def judge(request: Request, status: int | None, body: bytes) -> str | None:
    """What is wrong with an answer."""
    if status not in request.allowed:
        return f"status {status}: {body[:200]!r}"
    if status == 500:
        return "the model failed"
    if request.json and status != 307:
        try:
            content = json.loads(body)
        except ValueError:
            return f"no JSON: {body[:200]!r}"
        if status == 200 and not ({"model", "predictions"} <= content.keys() or {"model", "steps"} <= content.keys()):
            return f"no answer: {body[:200]!r}"
        if status != 200 and (list(content) != ["detail"] or not isinstance(content["detail"], str)):
            return f"no message: {body[:200]!r}"
    return None


def fuzz(
    host: str, port: int, count: int, seed: int = 0, clients: int = 8
) -> tuple[Counter[tuple[str, int | None]], list[Wrong]]:
    """Send `count` requests; how each kind was answered, and every answer that is not documented."""
    makers, weights = zip(*KINDS, strict=True)

    def one(number: int) -> tuple[str, int | None, Wrong | None]:
        r = random.Random(f"{seed}-{number}")
        request = r.choices(makers, weights)[0](r)
        status, body = send(host, port, request.content, request.kind == "no HTTP")
        problem = judge(request, status, body)
        return request.kind, status, Wrong(request.kind, problem, request.content[:500]) if problem else None

    with ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(one, range(count)))
    return Counter((kind, status) for kind, status, _ in answers), [wrong for *_, wrong in answers if wrong]


def main() -> int:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from sentence_state.models import JointModel

    from .conftest import train
    from .test_server import Server, memory

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=8000)
    parser.add_argument("--examples", type=int, default=1000, help="of schemathesis, for each operation")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        run = train(JointModel, "S-LSTM", Path(folder) / "assistant")
        server = Server([str(run)], Path(folder))
        healthy = server.post(["play some jazz"])
        before = memory(server.process.pid)
        counts, wrong = fuzz(server.host, server.port, arguments.requests, arguments.seed)
        command = [str(Path(sys.executable).with_name("schemathesis")), "run", "--no-color"]
        command += [f"http://{server.host}:{server.port}/openapi.json", "--max-examples", str(arguments.examples)]
        command += ["--exclude-checks", "positive_data_acceptance,unsupported_method"]  # see test_fuzz.py
        generated = subprocess.run(command, cwd=folder, check=False)
        same = server.post(["play some jazz"]) == healthy
        after = memory(server.process.pid)
        stopped = server.stop()
        noise = server.process.communicate()[1]
    for (kind, status), number in sorted(counts.items(), key=str):
        print(f"{number:6}  {kind:20} {status or 'hung up'}")
    print(f"{counts.total()} requests, {len(wrong)} undocumented answers; memory {before >> 20} -> {after >> 20} MiB")
    print(f"afterwards the same answer: {same}; exit code {stopped}; tracebacks in the log: {noise.count('Traceback')}")
    for one in wrong[:20]:
        print(one)
    good = same and not wrong and stopped == generated.returncode == 0 and "Traceback" not in noise
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
