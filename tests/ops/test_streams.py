from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from sentence_state.ops.streams import Beside, two_streams


def test_without_a_graph_everything_is_in_order():
    beside = Beside(torch.device("cpu"))
    with beside():
        done = torch.ones(2)
    beside.join()
    assert beside.stream is None
    assert done.sum() == 2


@pytest.fixture
def capturing(monkeypatch):
    """Streams that have names only; gives those that were asked for."""
    made = []

    def stream(device):
        made.append(f"stream {len(made)}")
        return made[-1]

    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: "stream 0")
    monkeypatch.setattr(torch.cuda, "Stream", stream)
    two_streams.cache_clear()
    yield made
    two_streams.cache_clear()


def test_nothing_runs_beside_itself_and_streams_are_few(capturing):
    """PyTorch gives its streams in turn, the one that is captured too."""
    assert {Beside(torch.device("cuda")).stream for _ in range(100)} == {"stream 1"}
    assert capturing == ["stream 0", "stream 1"]


def test_threads_share_no_stream(capturing):
    device = torch.device("cuda")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: Beside(device).stream).result() != Beside(device).stream


@pytest.mark.gpu
def test_nothing_runs_beside_itself_on_a_card(monkeypatch):
    device = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    found = set()
    for _ in range(100):
        with torch.cuda.stream(torch.cuda.Stream()):
            stream = Beside(device).stream
            assert stream != torch.cuda.current_stream()
            found.add(stream.cuda_stream)
    assert len(found) <= 2
