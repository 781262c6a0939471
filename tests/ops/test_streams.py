import pytest
import torch

from sentence_state.ops.streams import Beside


def test_without_a_graph_everything_is_in_order():
    beside = Beside(torch.device("cpu"))
    with beside():
        done = torch.ones(2)
    beside.join()
    assert beside.stream is None
    assert done.sum() == 2


@pytest.mark.parametrize("given", [("captured", "another"), ("another", "a third")])
def test_nothing_runs_beside_itself(monkeypatch, given):
    """PyTorch gives its streams in turn, the one that is captured too."""
    streams = iter(given)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: "captured")
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: next(streams))
    assert Beside(torch.device("cuda")).stream == "another"


@pytest.mark.gpu
def test_nothing_runs_beside_itself_on_a_card(monkeypatch):
    device = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with torch.cuda.stream(torch.cuda.Stream()):
        current = torch.cuda.current_stream()
        assert all(Beside(device).stream != current for _ in range(100))
        assert any(torch.cuda.Stream() == current for _ in range(100))  # else the case is not met here
