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
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

from sentence_state.serving import protocol
from sentence_state.serving import server as server_module
from sentence_state.serving.server import build_app, listen, serve, uvicorn_server

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

    def waiting(self) -> int:
        """Sentences in the queue."""
        connection = HTTPConnection(self.host, self.port, timeout=WAIT)
        connection.request("GET", "/metrics", headers={"Connection": "close"})
        found = re.search(r"^sentence_state_queue_sentences{.*} (\d+)", connection.getresponse().read().decode(), re.M)
        assert found
        return int(found[1])

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


class Inside:
    """A server in a thread of this process."""

    def __init__(self, app) -> None:
        self.batcher = app.state.services[0].batcher
        self.server, self.listening = uvicorn_server(app, 100), listen("127.0.0.1", 0)
        self.address = self.listening.getsockname()
        self.connections: list[socket.socket] = []
        self.thread = threading.Thread(target=lambda: asyncio.run(serve(self.server, self.listening, lambda: None)))
        self.thread.start()

    def connect(self) -> socket.socket:
        self.connections.append(socket.create_connection(self.address, 10))
        return self.connections[-1]

    def ask(self, texts: list[str], again: bytes = b"") -> socket.socket:
        connection, body = self.connect(), json.dumps({"texts": texts}).encode()
        connection.sendall(POST % len(body) + body + again)
        return connection

    def hold_up(self) -> threading.Event:
        """Keep the model's thread busy until the event is set."""
        entered, go = threading.Event(), threading.Event()
        self.batcher.call(lambda: (entered.set(), go.wait(20)))
        assert entered.wait(10)
        return go


POST = b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


@contextmanager
def served(runs, models) -> Iterator[Inside]:
    running = Inside(build_app([runs["spans"]], [models["spans"]]))
    try:
        yield running
    finally:
        running.server.should_exit = True
        running.thread.join(10)
        for connection in (*running.connections, running.listening):
            connection.close()


def everything(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def wait_for(condition, seconds=10.0):
    for _ in range(int(seconds * 100)):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")


def interrupted(*_):
    raise KeyboardInterrupt


def model_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "model"}


def test_ctrl_c_while_the_application_is_made_leaves_no_thread_of_a_model(runs, models, monkeypatch):
    before = model_threads()
    monkeypatch.setattr(server_module, "create_app", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_app([runs["spans"]], [models["spans"]])
    assert model_threads() == before


def test_ctrl_c_before_anything_is_served_leaves_no_thread_of_a_model(runs, monkeypatch, capsys):
    from sentence_state.cli import main

    before = model_threads()
    monkeypatch.setattr(server_module, "run", interrupted)
    assert main(["serve", str(runs["spans"]), "--port", "0"]) == 130
    assert model_threads() == before


def test_a_signal_before_uvicorn_listens_to_them_is_not_lost(runs, models, monkeypatch):
    async def late(*arguments):
        signal.raise_signal(signal.SIGTERM)
        await serve(*arguments)

    monkeypatch.setattr(server_module, "serve", late)
    again = threading.Timer(5, signal.raise_signal, [signal.SIGTERM])  # so that a failure ends too
    again.start()
    with listen("127.0.0.1", 0) as listening:
        server_module.run(build_app([runs["spans"]], [models["spans"]]), listening, 100, lambda: None)
    assert again.is_alive()
    again.cancel()


def test_a_second_ctrl_c_ends_it_at_once_and_in_order(server):
    answers: list[tuple[int, dict]] = []
    long = ["play jazz " * 250] * 200
    clients = [threading.Thread(target=lambda: answers.append(server.post(long))) for _ in range(4)]
    for client in clients:
        client.start()
    wait_for(lambda: server.waiting() > 400)
    server.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert server.stop(signal.SIGINT) == 0
    for client in clients:
        client.join(WAIT)
    assert answers[-1] == (503, {"detail": "the server is stopping"})
    said = server.process.stderr.read()
    assert said.splitlines()[-1] == "stopped"
    assert "Traceback" not in said


def test_who_is_not_answered_in_time_after_a_signal_is_told_503(runs, models, monkeypatch, capsys):
    monkeypatch.setattr(server_module, "DRAIN_SECONDS", 1.0)
    with served(runs, models) as running:
        go = running.hold_up()
        clients = [running.ask(["play jazz"] * 3) for _ in range(8)]
        wait_for(lambda: running.batcher.depth == 24)
        running.server.should_exit = True
        start = time.monotonic()
        answers = [everything(client) for client in clients]
        assert 0.9 < time.monotonic() - start < 8
        for answer in answers:
            assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            assert b"\r\nretry-after: 5\r\n" in answer
            assert answer.endswith(b'{"detail":"the server is stopping"}')
        go.set()
        running.thread.join(10)
        assert not running.thread.is_alive()
        assert not running.batcher.thread.is_alive()
    assert "Traceback" not in capsys.readouterr().err


def test_a_client_that_does_not_finish_its_request_does_not_keep_a_server_that_stops(runs, models, monkeypatch, capsys):
    monkeypatch.setattr(server_module, "DRAIN_SECONDS", 0.3)
    monkeypatch.setattr(server_module, "LAST_SECONDS", 0.3)
    with served(runs, models) as running:
        slow = running.connect()
        slow.sendall(POST % 100 + b"{")
        wait_for(lambda: running.server.server_state.tasks)
        running.server.should_exit = True
        running.thread.join(10)
        assert not running.thread.is_alive()
    assert "Traceback" not in capsys.readouterr().err


def test_a_client_that_has_closed_its_side_behind_a_request_is_answered(runs, models):
    with served(runs, models) as running:
        go = running.hold_up()
        client = running.ask(["play jazz"], b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        wait_for(lambda: running.batcher.depth == 1)
        time.sleep(0.2)  # the server knows that no more will come
        go.set()
        answers = everything(client)  # to their end: the server hangs up
        assert answers.count(b"HTTP/1.1 200 OK") == 2
        assert answers.endswith(b'{"status":"ok"}')


def test_so_is_one_that_would_rather_speak_another_protocol(runs, models):
    with served(runs, models) as running:
        go = running.hold_up()
        client, body = running.connect(), b'{"texts": ["play jazz"]}'
        head = POST % len(body)
        client.sendall(head.replace(b"Host: a", b"Host: a\r\nUpgrade: h2c\r\nConnection: Upgrade") + body)
        client.shutdown(socket.SHUT_WR)
        wait_for(lambda: running.batcher.depth == 1)
        time.sleep(0.2)  # the server knows that no more will come
        go.set()
        assert everything(client).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("said", [b"", b"GET /hea", POST % 9, POST % 9 + b"{"])
def test_a_client_that_has_closed_its_side_within_a_request_is_hung_up_on(runs, models, said):
    with served(runs, models) as running:
        client = running.connect()
        client.sendall(said)
        client.shutdown(socket.SHUT_WR)
        assert everything(client) == b""


def test_a_client_that_has_left_is_forgotten_once_its_answer_is_there(runs, models, capsys):
    with served(runs, models) as running:
        go = running.hold_up()
        running.ask(["play jazz"], (POST % 9)).close()
        wait_for(lambda: running.batcher.depth == 1)
        go.set()
        wait_for(lambda: not running.server.server_state.connections)
        wait_for(lambda: not running.server.server_state.tasks)
    assert "Traceback" not in capsys.readouterr().err


def test_clients_that_have_left_take_no_place_from_others(runs, models):
    with served(runs, models) as running:
        running.server.config.limit_concurrency = 2
        go = running.hold_up()
        for number in range(1, 4):
            running.ask(["play jazz"]).close()
            wait_for(lambda number=number: running.batcher.depth == number)
            wait_for(lambda: all(one.ended for one in running.server.server_state.connections))
        client = running.connect()
        client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = everything(client)
        go.set()
        assert answer.startswith(b"HTTP/1.1 200 OK")


def test_clients_that_say_nothing_or_no_more_are_hung_up_on(runs, models, monkeypatch):
    monkeypatch.setattr(protocol, "SECONDS", 0.3)
    with served(runs, models) as running:
        silent, half, whole = (running.connect() for _ in range(3))
        half.sendall(b"POST /v1/predict HTTP/1.1\r\nHost:")
        whole.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert whole.recv(9) == b"HTTP/1.1 "
        assert silent.recv(1) == half.recv(1) == b""  # closed, long before the ten seconds of this client
        early = running.connect()
        early.sendall(b"POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
        assert early.recv(4096).startswith(b"HTTP/1.1 404")
        early.sendall(b"x")  # and never the other eight bytes
        assert b"HTTP" not in b"".join(iter(lambda: early.recv(4096), b""))
        time.sleep(0.5)
        whole.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answers = b"".join(iter(lambda: whole.recv(4096), b""))
        assert answers.count(b"200 OK") == 2


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
