import pytest
import torch

from sentence_state.encoders.cnn import CNN

D, H = 5, 4
LENGTHS = torch.tensor([4, 1, 6, 3])
FLOAT64 = {"rtol": 0, "atol": 1e-12}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def batch(num_positions=6):
    return torch.randn(len(LENGTHS), num_positions, D, dtype=torch.float64)


def convolve_by_hand(layer, words):
    """Window after window over one sentence (n, D) -> (n, H): zeros beyond both ends, then ReLU."""
    reach = layer.kernel_size[0] // 2
    rows = []
    for middle in range(len(words)):
        row = layer.bias.clone()
        for place in range(2 * reach + 1):
            if 0 <= middle + place - reach < len(words):
                row = row + layer.weight[:, :, place] @ words[middle + place - reach]
        rows.append(row.clamp(min=0))
    return torch.stack(rows)


@pytest.mark.parametrize("kernel_size", [1, 3, 5])
@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("padded", [True, False])
def test_equals_a_loop_over_windows(num_layers, kernel_size, padded):
    encoder = CNN(D, H, num_layers, kernel_size, dtype=torch.float64)
    x = batch()
    words, sentence = encoder(x, LENGTHS if padded else None)
    for row, length in enumerate(LENGTHS.tolist() if padded else [6] * 4):
        expected = x[row, :length]
        for layer in encoder.layers:
            expected = convolve_by_hand(layer, expected)
        torch.testing.assert_close(words[row, :length], expected, **FLOAT64)
        torch.testing.assert_close(sentence[row], expected.max(dim=0).values, **FLOAT64)
        assert not words[row, length:].any()


def test_gradients_equal_finite_differences():
    encoder = CNN(2, 3, num_layers=2, dtype=torch.float64)
    names, values = zip(*encoder.named_parameters(), strict=True)
    x = torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True)

    def encode(x, *values):
        return torch.func.functional_call(encoder, dict(zip(names, values, strict=True)), (x, torch.tensor([4, 1, 3])))

    assert torch.autograd.gradcheck(encode, (x, *values))


def test_dropout_stands_between_the_layers_and_nowhere_else():
    x = batch()
    one = CNN(D, H, 1, dropout=0.5, dtype=torch.float64)
    assert torch.equal(one(x).words, one.eval()(x).words)
    two = CNN(D, H, 2, dropout=1.0, dtype=torch.float64)
    torch.testing.assert_close(two(x).words, two.layers[1].bias.relu().expand(4, 6, H))
    assert not torch.equal(two(x).words, two.eval()(x).words)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_layers": 0}, "num_layers must be at least 1, got 0"),
        ({"kernel_size": 0}, "kernel_size must be at least 1, got 0"),
        ({"kernel_size": 4}, "kernel_size must be odd, with as many words left as right, got 4"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        CNN(**({"input_size": D, "hidden_size": H} | arguments))
