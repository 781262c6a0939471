import copy

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sentence_state.encoders.bilstm import LSTM, BiLSTM, StandardLayer, reverse
from tests import by_hand

D, H = 5, 3
LENGTHS = torch.tensor([4, 1, 6, 3])
FLOAT64 = {"rtol": 0, "atol": 1e-12}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def randomised(encoder):
    """Every parameter away from its initial value, so that none of them (h^0, c^0) can be left out unnoticed."""
    for parameter in encoder.parameters():
        nn.init.normal_(parameter)
    return encoder


def batch(num_positions=6):
    return torch.randn(len(LENGTHS), num_positions, D, dtype=torch.float64)


# ---- the coupled cell -----------------------------------------------------------------------------


def by_hand_weights(layer, direction):
    def gates(block):  # (rows, 4H) -> for each gate H lists of numbers
        return dict(zip("ifou", [part.T.tolist() for part in block.chunk(4, dim=-1)], strict=True))

    return {
        "W": gates(layer.W[direction]),
        "U": gates(layer.U[direction]),
        "b": {gate: [row[0] for row in rows] for gate, rows in gates(layer.b[direction]).items()},
        "h": layer.h_0[direction, 0].tolist(),
        "c": layer.c_0[direction, 0].tolist(),
    }


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("padded", [True, False])
def test_coupled_bilstm_equals_eq_1_by_hand(num_layers, padded):
    encoder = randomised(BiLSTM(D, H, num_layers, cell="coupled", dtype=torch.float64))
    x = batch()
    words, sentence = encoder(x, LENGTHS if padded else None)
    layers = [(by_hand_weights(layer, 0), by_hand_weights(layer, 1)) for layer in encoder.layers]
    for row, length in enumerate(LENGTHS.tolist() if padded else [6] * 4):
        expected_words, expected_sentence = by_hand.bilstm(x[row, :length].tolist(), layers)
        expected_words += [[0.0] * 2 * H] * (6 - length)
        torch.testing.assert_close(words[row].tolist(), expected_words, rtol=0, atol=1e-10)
        torch.testing.assert_close(sentence[row].tolist(), expected_sentence, rtol=0, atol=1e-10)


def test_coupled_lstm_equals_eq_1_by_hand():
    encoder = randomised(LSTM(D, H, cell="coupled", dtype=torch.float64))
    x = batch()
    words, sentence = encoder(x, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        expected = by_hand.lstm(x[row, :length].tolist(), **by_hand_weights(encoder.layers[0], 0))
        torch.testing.assert_close(words[row, :length].tolist(), expected, rtol=0, atol=1e-10)
        torch.testing.assert_close(sentence[row].tolist(), expected[-1], rtol=0, atol=1e-10)


def test_gradients_of_the_coupled_cell_equal_finite_differences():
    encoder = randomised(BiLSTM(2, 2, num_layers=2, cell="coupled", dtype=torch.float64))
    names, values = zip(*encoder.named_parameters(), strict=True)
    x = torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True)

    def encode(x, *values):
        return torch.func.functional_call(encoder, dict(zip(names, values, strict=True)), (x, torch.tensor([4, 1, 3])))

    assert torch.autograd.gradcheck(encode, (x, *values))


def test_initial_states_of_the_coupled_cell_are_parameters_that_start_at_zero():
    layer = BiLSTM(D, H, cell="coupled").layers[0]
    for initial in (layer.h_0, layer.c_0):
        assert isinstance(initial, nn.Parameter)
        assert initial.shape == (2, 1, H)
        assert not initial.any()


# ---- the standard cell ----------------------------------------------------------------------------


def pytorch_twin(encoder):
    """One nn.LSTM of all layers with the same weights."""
    twin = nn.LSTM(
        D,
        H,
        num_layers=len(encoder.layers),
        batch_first=True,
        bidirectional=encoder.num_directions == 2,
        dtype=torch.float64,
    )
    for theirs, ours in zip(twin.parameters(), encoder.parameters(), strict=True):
        theirs.data.copy_(ours.data)
    return twin


def run_twin(twin, x, lengths):
    """Outputs (B, N, ..) and the last layer's final states (B, ..) of nn.LSTM, packed where there are lengths."""
    if lengths is None:
        words, (h_n, _) = twin(x)
    else:
        packed, (h_n, _) = twin(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        words, _ = pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
    directions = 2 if twin.bidirectional else 1
    return words, h_n[-directions:].transpose(0, 1).flatten(1)


@pytest.mark.parametrize("lengths", [LENGTHS, None], ids=["padded", "full"])
@pytest.mark.parametrize("num_layers", [1, 2, 4])
@pytest.mark.parametrize("encoder_class", [LSTM, BiLSTM])
def test_standard_cell_equals_nn_lstm_in_outputs_and_gradients(encoder_class, num_layers, lengths):
    encoder = encoder_class(D, H, num_layers, dtype=torch.float64)
    twin = pytorch_twin(encoder)
    x = batch().requires_grad_()
    twin_x = x.detach().clone().requires_grad_()
    words, sentence = encoder(x, lengths)
    twin_words, twin_sentence = run_twin(twin, twin_x, lengths)
    torch.testing.assert_close(words, twin_words, **FLOAT64)
    torch.testing.assert_close(sentence, twin_sentence, **FLOAT64)

    down_words, down_sentence = torch.randn_like(words), torch.randn_like(sentence)
    gradients = torch.autograd.grad([words, sentence], [x, *encoder.parameters()], [down_words, down_sentence])
    expected = torch.autograd.grad(
        [twin_words, twin_sentence], [twin_x, *twin.parameters()], [down_words, down_sentence]
    )
    for gradient, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, other, **FLOAT64)


@pytest.mark.parametrize("autocast", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("lengths", [LENGTHS, None], ids=["padded", "full"])
def test_it_runs_in_float32_where_the_processor_has_no_fast_products_of_a_type(monkeypatch, lengths, dtype, autocast):
    monkeypatch.setattr("sentence_state.encoders.bilstm.has_products_of", lambda dtype: dtype.itemsize > 2)
    encoder, x = BiLSTM(D, H, num_layers=2), batch().to(dtype).float()
    for parameter in encoder.parameters():
        parameter.data = parameter.to(dtype).float()
    own_type = torch.float32 if autocast else dtype
    low = copy.deepcopy(encoder).to(own_type)
    with torch.autocast("cpu", dtype=dtype, enabled=autocast):
        words, sentence = low(x.to(own_type), lengths)
        assert torch.is_autocast_enabled("cpu") == autocast
    expected = encoder(x, lengths)
    assert words.dtype == sentence.dtype == dtype
    rounding = torch.finfo(dtype).eps  # of the first layer's outputs and of these
    torch.testing.assert_close(words.float(), expected.words, rtol=rounding, atol=rounding)
    torch.testing.assert_close(sentence.float(), expected.sentence, rtol=rounding, atol=rounding)
    (words.sum() + sentence.sum()).backward()
    assert all(parameter.grad.any() and parameter.grad.dtype == own_type for parameter in low.parameters())


def test_its_weights_stay_where_they_are_while_copies_in_float32_are_used(monkeypatch):
    """Else a second thread would take the copies for the weights, and leave them there."""
    monkeypatch.setattr("sentence_state.encoders.bilstm.has_products_of", lambda dtype: dtype.itemsize > 2)
    encoder, run, met = BiLSTM(D, H).bfloat16(), StandardLayer.one_direction, []

    def look(self, x, weights):
        met.append([weight.dtype for weight in (*encoder.parameters(), *weights)])
        return run(self, x, weights)

    monkeypatch.setattr(StandardLayer, "one_direction", look)
    encoder(batch().bfloat16(), LENGTHS)
    assert met == [[torch.bfloat16] * 8 + [torch.float32] * 4] * 2


def test_one_call_for_both_directions_as_on_a_gpu_equals_two_calls():
    layer = BiLSTM(D, H, dtype=torch.float64).layers[0]
    x = batch().requires_grad_()
    mask = (torch.arange(6) < LENGTHS[:, None])[..., None]
    results = []
    for run in (layer, layer.directions_in_one_call):
        h = run(x, LENGTHS) * mask
        results.append([h, *torch.autograd.grad(h.sin().sum(), [x, *layer.parameters()])])
    for two_calls, one_call in zip(*results, strict=True):
        torch.testing.assert_close(one_call, two_calls, **FLOAT64)


@pytest.mark.gpu
@pytest.mark.parametrize("cell", ["standard", "coupled"])
def test_gpu_equals_cpu_and_can_be_captured_with_padding(cell):
    encoder = BiLSTM(D, H, 2, cell, dtype=torch.float64).eval()
    x = batch()
    expected = encoder(x, LENGTHS)
    encoder, x, lengths = encoder.cuda(), x.cuda(), LENGTHS.cuda()
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode():
        encoder(x, lengths)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            captured = encoder(x, lengths)
        graph.replay()
    for output, other in zip(captured, expected, strict=True):
        torch.testing.assert_close(output.cpu(), other, **FLOAT64)


# ---- both cells -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["standard", "coupled"])
@pytest.mark.parametrize("encoder_class", [LSTM, BiLSTM])
def test_sentence_is_the_last_forward_and_the_first_backward_state(encoder_class, cell):
    encoder = encoder_class(D, H, 2, cell, dtype=torch.float64)
    words, sentence = encoder(batch(), LENGTHS)
    last = words[torch.arange(4), LENGTHS - 1]
    assert torch.equal(sentence[:, :H], last[:, :H])
    assert torch.equal(sentence[:, H:], words[:, 0, H:])
    assert sentence.shape == (4, encoder.output_size)


@pytest.mark.parametrize("cell", ["standard", "coupled"])
def test_dropout_stands_between_the_layers_and_nowhere_else(cell):
    x = batch()
    one = BiLSTM(D, H, 1, cell, dropout=0.5, dtype=torch.float64)
    assert torch.equal(one(x).words, one.eval()(x).words)
    two = BiLSTM(D, H, 2, cell, dropout=1.0, dtype=torch.float64)
    torch.testing.assert_close(two(x).words, two.layers[1](torch.zeros(4, 6, 2 * H, dtype=torch.float64), None))
    assert not torch.equal(two(x).words, two.eval()(x).words)


@pytest.mark.parametrize("cell", ["standard", "coupled"])
def test_exports_with_any_number_of_sentences_of_one_length(cell):
    encoder = BiLSTM(D, H, 2, cell, dtype=torch.float64).eval()
    sentences = torch.export.Dim("sentences", max=64)
    shapes = {"x": {0: sentences}, "lengths": {0: sentences}}
    program = torch.export.export(encoder, (batch(), LENGTHS), dynamic_shapes=shapes, strict=False).module()
    x, lengths = batch()[:3], LENGTHS[:3]
    for output, expected in zip(program(x, lengths), encoder(x, lengths), strict=True):
        torch.testing.assert_close(output, expected, **FLOAT64)


@pytest.mark.parametrize("cell", ["standard", "coupled"])
def test_compiled_equals_eager_at_every_length(cell):
    encoder = BiLSTM(D, H, 2, cell, dtype=torch.float64).eval()
    compiled = torch.compile(encoder, dynamic=True, backend="aot_eager")
    for num_positions in (6, 8):
        x = batch(num_positions)
        for output, expected in zip(compiled(x, LENGTHS), encoder(x, LENGTHS), strict=True):
            torch.testing.assert_close(output, expected, **FLOAT64)


def test_reverse_turns_each_sentence_within_its_own_length():
    x = torch.arange(10).reshape(2, 5, 1)
    assert reverse(x, torch.tensor([3, 5])).squeeze(2).tolist() == [[2, 1, 0, 3, 4], [9, 8, 7, 6, 5]]
    assert reverse(x, None).squeeze(2).tolist() == [[4, 3, 2, 1, 0], [9, 8, 7, 6, 5]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cell": "gru"}, "cell must be one of 'standard', 'coupled', got 'gru'"),
        ({"num_layers": 0}, "num_layers must be at least 1, got 0"),
        ({"dropout": 1.5}, "got 1.5"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        BiLSTM(**({"input_size": D, "hidden_size": H} | arguments))


@pytest.mark.parametrize("cls", [LSTM, BiLSTM])
def test_a_layer_of_bfloat16_is_exported_strictly(cls):
    layer, x = cls(5, 6).bfloat16().eval(), torch.randn(3, 4, 5).bfloat16()
    program = torch.export.export(layer, (x,), strict=True)
    torch.testing.assert_close(program.module()(x).words, layer(x).words)
