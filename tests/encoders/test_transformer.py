import math

import pytest
import torch
from torch import nn

from sentence_state.encoders.transformer import Transformer, positions

D, H, HEADS = 5, 6, 2
LENGTHS = torch.tensor([4, 1, 6, 3])
FLOAT64 = {"rtol": 0, "atol": 1e-12}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def batch(num_positions=6, size=D):
    return torch.randn(len(LENGTHS), num_positions, size, dtype=torch.float64)


def randomised(encoder):
    for parameter in encoder.parameters():
        nn.init.normal_(parameter)
    return encoder.eval()


def norm_by_hand(norm, row):
    variance = ((row - row.mean()) ** 2).mean()
    return (row - row.mean()) / (variance + norm.eps).sqrt() * norm.weight + norm.bias


def attend_by_hand(layer, rows):
    """One query and one head after the other, over one sentence (n, H) -> (n, H)."""
    W, b, size = layer.queries_keys_values.weight, layer.queries_keys_values.bias, H // HEADS
    out = []
    for query_row in rows:
        heads = []
        for head in range(HEADS):
            q, k, v = (slice(part * H + head * size, part * H + (head + 1) * size) for part in range(3))
            query = W[q] @ query_row + b[q]
            scores = torch.stack([query @ (W[k] @ row + b[k]) / math.sqrt(size) for row in rows])
            weights = scores.exp() / scores.exp().sum()
            heads.append(sum(weight * (W[v] @ row + b[v]) for weight, row in zip(weights, rows, strict=True)))
        out.append(layer.heads_out.weight @ torch.cat(heads) + layer.heads_out.bias)
    return out


def encode_by_hand(encoder, words):
    """One layer over one sentence (n, D) -> (n, H)."""
    layer = encoder.layers[0]
    first, last = layer.feedforward[0], layer.feedforward[3]
    rows = [encoder.projection.weight @ word + encoder.projection.bias for word in words]
    for n, row in enumerate(rows):
        angles = [n / 10000 ** (2 * (unit // 2) / H) for unit in range(H)]
        wave = [math.cos(angle) if unit % 2 else math.sin(angle) for unit, angle in enumerate(angles)]
        rows[n] = row + torch.tensor(wave, dtype=torch.float64)
    attended = attend_by_hand(layer, [norm_by_hand(layer.attention_norm, row) for row in rows])
    rows = [row + change for row, change in zip(rows, attended, strict=True)]
    for n, row in enumerate(rows):
        inner = first.weight @ norm_by_hand(layer.feedforward_norm, row) + first.bias
        rows[n] = row + last.weight @ inner.clamp(min=0) + last.bias
    return torch.stack([norm_by_hand(encoder.norm, row) for row in rows])


@pytest.mark.parametrize("padded", [True, False])
def test_one_layer_equals_attention_by_hand(padded):
    encoder = randomised(Transformer(D, H, 1, HEADS, feedforward_size=7, dtype=torch.float64))
    x = batch()
    words, sentence = encoder(x, LENGTHS if padded else None)
    for row, length in enumerate(LENGTHS.tolist() if padded else [6] * 4):
        expected = encode_by_hand(encoder, x[row, :length])
        torch.testing.assert_close(words[row, :length], expected, **FLOAT64)
        torch.testing.assert_close(sentence[row], expected.mean(dim=0), **FLOAT64)
        assert not words[row, length:].any()


def pytorch_twin(encoder):
    """nn.TransformerEncoder with the weights of `encoder`."""
    layer = nn.TransformerEncoderLayer(H, HEADS, 4 * H, 0.0, batch_first=True, norm_first=True, dtype=torch.float64)
    twin = nn.TransformerEncoder(layer, len(encoder.layers), encoder.norm, enable_nested_tensor=False)
    for theirs, ours in zip(twin.layers, encoder.layers, strict=True):
        pairs = [
            (theirs.self_attn.out_proj, ours.heads_out),
            (theirs.linear1, ours.feedforward[0]),
            (theirs.linear2, ours.feedforward[3]),
            (theirs.norm1, ours.attention_norm),
            (theirs.norm2, ours.feedforward_norm),
        ]
        for module, own in pairs:
            module.load_state_dict(own.state_dict())
        theirs.self_attn.in_proj_weight.data.copy_(ours.queries_keys_values.weight.data)
        theirs.self_attn.in_proj_bias.data.copy_(ours.queries_keys_values.bias.data)
    return twin


def test_layers_equal_nn_transformer_encoder_in_outputs_and_gradients():
    encoder = randomised(Transformer(H, H, 3, HEADS, dropout=0.0, dtype=torch.float64))
    twin = pytorch_twin(encoder)
    x = batch(size=H).requires_grad_()
    padding = torch.arange(6) >= LENGTHS[:, None]
    words = encoder(x, LENGTHS).words
    expected = twin(x + positions(6, H, x.dtype, x.device), src_key_padding_mask=padding).masked_fill(
        padding[..., None], 0
    )
    torch.testing.assert_close(words, expected, **FLOAT64)
    (gradient,) = torch.autograd.grad(words.sin().sum(), x)
    (other,) = torch.autograd.grad(expected.sin().sum(), x)
    torch.testing.assert_close(gradient, other, **FLOAT64)


def test_positions_tell_two_orders_of_the_same_words_apart():
    encoder = Transformer(D, H, 2, HEADS, dtype=torch.float64).eval()
    x = batch()
    assert not torch.allclose(encoder(x).sentence, encoder(x.flip(1)).sentence)


def test_positions_are_exact_in_bfloat16_far_beyond_what_it_can_count():
    rounded, exact = (positions(1000, 7, dtype, torch.device("cpu")) for dtype in (torch.bfloat16, torch.float64))
    assert exact.shape == (1000, 7)
    torch.testing.assert_close(rounded.double(), exact, rtol=0, atol=2**-8)  # one rounding of a number below 1


def test_dropout_acts_in_training_only():
    encoder = Transformer(D, H, 2, HEADS, dropout=0.5, dtype=torch.float64)
    x = batch()
    assert not torch.equal(encoder(x).words, encoder(x).words)
    encoder.eval()
    assert torch.equal(encoder(x).words, encoder(x).words)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_layers": 0}, "num_layers must be at least 1, got 0"),
        ({"num_heads": 0}, "num_heads must be at least 1, got 0"),
        ({"feedforward_size": 0}, "feedforward_size must be at least 1, got 0"),
        ({"hidden_size": 7, "num_heads": 2}, "hidden_size must be divisible by num_heads = 2, got 7"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Transformer(**({"input_size": D, "hidden_size": H} | arguments))
