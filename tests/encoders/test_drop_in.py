"""`DropInLSTM` behaves as nn.LSTM does, in every layout."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sentence_state import DropInLSTM


def shapes(output, states):
    return output.shape, *(state.shape for state in states)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("shape", [(6, 2, 3), (6, 3)])
def test_shapes_and_layouts_are_those_of_nn_lstm(bidirectional, batch_first, shape):
    arguments = {"bidirectional": bidirectional, "batch_first": batch_first}
    x = torch.randn(shape)
    output, states = DropInLSTM(3, 5, **arguments)(x)
    their_output, their_states = nn.LSTM(3, 5, **arguments)(x)
    for ours, theirs in zip((output, *states), (their_output, *their_states), strict=True):
        assert ours.shape == theirs.shape
        assert ours.is_contiguous() or not theirs.is_contiguous()  # code calls `output.view(-1, output.shape[-1])`


def test_no_sentences_give_the_shapes_of_nn_lstm():
    x = torch.randn(6, 0, 3)
    assert shapes(*DropInLSTM(3, 5, bidirectional=True)(x)) == shapes(*nn.LSTM(3, 5, bidirectional=True)(x))


def test_the_arguments_can_be_read_as_from_nn_lstm():
    arguments = {"input_size": 3, "hidden_size": 5, "bias": False, "batch_first": True, "bidirectional": True}
    ours, theirs = DropInLSTM(**arguments), nn.LSTM(**arguments)
    for name in (*arguments, "num_layers", "dropout", "proj_size"):
        assert getattr(ours, name) == getattr(theirs, name), name


def test_reset_parameters_draws_the_weights_anew():
    torch.manual_seed(0)
    lstm = DropInLSTM(3, 5)
    drawn = lstm.encoder.W.detach().clone()
    lstm.reset_parameters()
    assert not torch.equal(lstm.encoder.W, drawn)
    torch.manual_seed(0)
    lstm.reset_parameters()
    assert torch.equal(lstm.encoder.W, drawn)


@pytest.mark.parametrize("enforce_sorted", [False, True])
def test_packed_input_gives_packed_output_in_the_same_order(enforce_sorted):
    torch.manual_seed(0)
    lengths = torch.tensor([6, 3, 3, 1] if enforce_sorted else [3, 6, 1, 3])
    x = torch.randn(4, 6, 3)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=enforce_sorted)
    ours, theirs = DropInLSTM(3, 5, bidirectional=True), nn.LSTM(3, 5, bidirectional=True)
    output, (h_n, c_n) = ours(packed)
    their_output, (their_h_n, their_c_n) = theirs(packed)
    assert torch.equal(output.batch_sizes, their_output.batch_sizes)
    assert output.data.shape == their_output.data.shape
    assert h_n.shape == their_h_n.shape
    assert c_n.shape == their_c_n.shape
    words, _ = pad_packed_sequence(output, batch_first=True)
    for row, length in enumerate(lengths):
        alone, (h_alone, c_alone) = ours(x[row, :length])
        torch.testing.assert_close(words[row, :length], alone, rtol=0, atol=1e-6)  # float32
        torch.testing.assert_close(h_n[:, row], h_alone, rtol=0, atol=1e-6)
        torch.testing.assert_close(c_n[:, row], c_alone, rtol=0, atol=1e-6)


def test_joining_the_last_two_states_gives_the_sentence_vector():
    lstm = DropInLSTM(3, 5, bidirectional=True, batch_first=True)
    x = torch.randn(2, 6, 3)
    _, (h_n, c_n) = lstm(x)
    g = torch.cat([h_n[-2], h_n[-1]], dim=-1)
    torch.testing.assert_close(g, lstm.encoder(x).sentence)
    trace = lstm.encoder.trace(x)
    torch.testing.assert_close(torch.cat([c_n[-2], c_n[-1]], dim=-1), trace.sentence_cells[-1, :, 0])


class Tagger(nn.Module):
    """Code as people write it for a BiLSTM; only the class that is built differs."""

    def __init__(self, lstm_class):
        super().__init__()
        self.lstm = lstm_class(8, 16, batch_first=True, bidirectional=True)
        self.out = nn.Linear(32, 4)

    def forward(self, x, lengths):
        self.lstm.flatten_parameters()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        output, _ = self.lstm(packed)
        return self.out(pad_packed_sequence(output, batch_first=True)[0])


@pytest.mark.parametrize("lstm_class", [nn.LSTM, DropInLSTM])
def test_code_written_for_a_bilstm_trains_with_one_line_changed(lstm_class):
    torch.manual_seed(0)
    model = Tagger(lstm_class)
    x, lengths = torch.randn(16, 7, 8), torch.randint(1, 8, (16,))
    lengths[0] = 7
    target = (x[..., :2] > 0).long() @ torch.tensor([1, 2])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    mask = torch.arange(7) < lengths[:, None]
    for _ in range(100):
        loss = nn.functional.cross_entropy(model(x, lengths)[mask], target[mask])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_layers": 2}, "num_layers must be 1, got 2"),
        ({"proj_size": 3}, "proj_size must be 0, got 3"),
        ({"dropout": 1.0}, r"^dropout must lie in \[0, 1\), got 1.0"),
        ({"gates": "soft"}, "gates must be one of"),
    ],
)
def test_what_has_no_counterpart_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DropInLSTM(3, 5, **options)


def test_an_initial_state_is_refused():
    state = torch.zeros(1, 2, 5)
    with pytest.raises(ValueError, match="hx must be None"):
        DropInLSTM(3, 5)(torch.randn(6, 2, 3), (state, state))
