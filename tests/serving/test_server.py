"""The server as a process: `sentence-state serve` as it is typed, signals as an init system sends them."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from http.client import HTTPConnection

import pytest

from sentence_state.serving.server import listen

from ..command_line import environment, start

WAIT = 30.0


class Server:
    """A running server; `address` is what it said."""

    def __init__(self, arguments: list[str], folder) -> None:
        self.process = start(["serve", *arguments, "--port", "0"], folder)
        self.said = ""
        for line in self.process.stderr:
            self.said += line
            if found := re.search(r"http://([\d.]+):(\d+)", line):
                self.host, self.port = found[1], int(found[2])
                return
        raise AssertionError(self.said)

    def post(self, texts: list[str], **headers: str) -> tuple[int, dict]:
        connection = HTTPConnection(self.host, self.port, timeout=WAIT)
        body = json.dumps({"texts": texts})
        connection.request("POST", "/v1/predict", body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(WAIT)


@pytest.fixture
def server(request, runs, tmp_path):
    running = Server([str(runs["assistant"]), *getattr(request, "param", [])], tmp_path)
    yield running
    if running.process.poll() is None:
        running.process.kill()
    running.process.communicate()


def test_answers_are_sent_at_once():
    """Without TCP_NODELAY the second part of an answer waits 40 ms, until the client has confirmed the first."""

    async def delays() -> list[bool]:
        found = []

        async def accept(reader, writer):
            found.append(not writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = listen("127.0.0.1", 0)
        async with await asyncio.start_server(accept, sock=listening):
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            await reader.read()
            writer.close()
        return found

    assert asyncio.run(delays()) == [False]


@pytest.mark.parametrize("server", [["--max-wait-ms", "1500", "--max-batch", "1000"]], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_was_accepted_is_answered_after_a_signal(server, number):
    answers: list[tuple[int, dict]] = []
    clients = [threading.Thread(target=lambda: answers.append(server.post(["play jazz"] * 3))) for _ in range(8)]
    for client in clients:
        client.start()
    time.sleep(0.7)  # all of them wait for company now, and would for 0.8 seconds more
    assert not answers
    assert server.stop(number) == 0
    for client in clients:
        client.join(WAIT)
    assert [status for status, _ in answers] == [200] * 8
    assert all(len(answer["predictions"]) == 3 for _, answer in answers)
    with pytest.raises(ConnectionRefusedError):
        server.post(["too late"])
    assert "Traceback" not in server.process.stderr.read()


def test_it_listens_on_loopback_only_and_answers(server):
    assert server.host == "127.0.0.1"
    status, answer = server.post(["play some jazz"])
    assert status == 200
    assert answer["predictions"][0]["label"]
    listening = subprocess.run(["cat", "/proc/net/tcp"], capture_output=True, text=True, check=False).stdout
    if listening:
        assert f"0100007F:{server.port:04X}" in listening
        assert f"00000000:{server.port:04X}" not in listening


def test_a_token_of_a_file_is_asked_for(runs, tmp_path):
    (tmp_path / "token").write_text("sesame\n")
    server = Server([str(runs["assistant"]), "--token-file", "token"], tmp_path)
    try:
        assert server.post(["a"])[0] == 401
        assert server.post(["a"], Authorization="Bearer sesame")[0] == 200
    finally:
        server.stop()
        server.process.communicate()


def test_overload_is_shed_with_429_and_memory_stays(runs, tmp_path):
    limits = ["--max-queue", "8", "--max-texts", "8", "--max-batch", "1", "--threads", "1"]
    server = Server([str(runs["assistant"]), *limits], tmp_path)
    try:
        server.post(["play some jazz in the kitchen"] * 8)
        statuses: list[int] = []

        def ask():
            statuses.extend(server.post(["play some jazz in the kitchen"] * 8)[0] for _ in range(12))

        clients = [threading.Thread(target=ask) for _ in range(16)]
        before = memory(server.process.pid)
        for client in clients:
            client.start()
        for client in clients:
            client.join(WAIT)
        assert set(statuses) == {200, 429}
        assert len(statuses) == 16 * 12
        assert memory(server.process.pid) < before + 64e6
        assert server.post(["play some jazz"])[0] == 200
    finally:
        server.stop()
        server.process.communicate()


def test_clients_that_say_nothing_or_no_more_are_hung_up_on(runs, models, monkeypatch):
    from sentence_state.serving import protocol
    from sentence_state.serving.server import build_app, serve, uvicorn_server

    monkeypatch.setattr(protocol, "SECONDS", 0.3)
    app, listening = build_app([runs["spans"]], [models["spans"]]), listen("127.0.0.1", 0)
    server = uvicorn_server(app, 100)
    thread = threading.Thread(target=lambda: asyncio.run(serve(server, listening, lambda: None)))
    thread.start()
    try:
        silent, half, whole = (socket.create_connection(listening.getsockname(), 10) for _ in range(3))
        half.sendall(b"POST /v1/predict HTTP/1.1\r\nHost:")
        whole.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert whole.recv(9) == b"HTTP/1.1 "
        assert silent.recv(1) == half.recv(1) == b""  # closed, long before the ten seconds of this client
        early = socket.create_connection(listening.getsockname(), 10)
        early.sendall(b"POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
        assert early.recv(4096).startswith(b"HTTP/1.1 404")
        early.sendall(b"x")  # and never the other eight bytes
        assert b"HTTP" not in b"".join(iter(lambda: early.recv(4096), b""))
        early.close()
        time.sleep(0.5)
        whole.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answers = b"".join(iter(lambda: whole.recv(4096), b""))
        assert answers.count(b"200 OK") == 2
    finally:
        server.should_exit = True
        thread.join(10)
        for connection in (silent, half, whole, listening):
            connection.close()


@pytest.mark.parametrize("server", [["--max-connections", "3"]], indirect=True)
def test_a_client_too_many_is_told_so_and_may_come_back(server):
    held = [HTTPConnection(server.host, server.port, timeout=WAIT) for _ in range(3)]
    for connection in held:
        connection.request("GET", "/health")
        assert connection.getresponse().read() == b'{"status":"ok"}'
    assert server.post(["a"]) == (503, {"detail": "the server has as many clients as it takes"})
    held[0].close()
    time.sleep(0.2)
    assert server.post(["play jazz"])[0] == 200
    held[1].request("GET", "/metrics")
    assert 'status="503"' in held[1].getresponse().read().decode()
    for connection in held:
        connection.close()


def memory(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4096


# ---- what is refused at the start ---------------------------------------------------------------


def refused(arguments: list[str], folder) -> str:
    process = start(["serve", *arguments], folder)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2, errors
    assert "Traceback" not in errors
    return errors


def test_a_port_that_is_taken_is_named(runs, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refused([str(runs["spans"]), "--port", str(port)], tmp_path)
    assert message.startswith(f"error: cannot listen on 127.0.0.1:{port}: Address already in use")


def test_a_damaged_folder_is_refused_before_anything_is_served(runs, tmp_path):
    shutil.copytree(runs["spans"], tmp_path / "damaged")
    weights = tmp_path / "damaged" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    message = refused([str(runs["labels"]), "damaged", "--port", "0"], tmp_path)
    assert message.startswith("error: damaged/model.safetensors: damaged, or no safetensors file")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the folder of a trained model"),
        (["nowhere"], "nowhere: no such folder"),
        (["RUN", "--max-batch", "0"], "max_batch must be 1 or more, got 0"),
        (["RUN", "--max-queue", "9"], "max_queue must hold one request: at least max_texts = 256, got 9"),
        (["RUN", "--port", "70000"], "--port must lie between 0 and 65535, got 70000"),
        (["RUN", "--host", "999.1.1.1"], "cannot listen on 999.1.1.1:8000"),
        (["RUN", "--threads", "0"], "--threads must be 1 or more, got 0"),
        (["RUN", "--token-file", "none"], "none: No such file or directory"),
    ],
)
def test_wrong_flags_are_one_message(runs, tmp_path, arguments, message, capsys, monkeypatch):
    from sentence_state.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["serve", *(str(runs["spans"]) if argument == "RUN" else argument for argument in arguments)]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_extra_is_named(runs, tmp_path):
    code = (
        "import sys; sys.modules['fastapi'] = None; from sentence_state.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = ["python", "-c", code, "serve", str(runs["spans"])]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert 'pip install "sentence-state[serve]"' in done.stderr
