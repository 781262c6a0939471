import pytest
import torch

from sentence_state.heads import AdditiveAttention
from tests import by_hand


def attention_and_words(dtype=torch.float64):
    torch.manual_seed(0)
    return AdditiveAttention(5, dtype=dtype), torch.randn(4, 6, 5, dtype=dtype), torch.tensor([6, 1, 3, 5])


def by_hand_weights(attention, words):
    return by_hand.attention(
        words.tolist(), attention.W.weight.tolist(), attention.W.bias.tolist(), attention.u.weight[0].tolist()
    )


def test_weights_and_sum_equal_the_equations_by_hand():
    attention, words, lengths = attention_and_words()
    weights, g = attention.weights(words, lengths), attention(words, lengths)
    for row, length in enumerate(lengths.tolist()):
        expected = by_hand_weights(attention, words[row, :length])
        padding = [0.0] * (6 - length)
        torch.testing.assert_close(
            weights[row], torch.tensor(expected + padding, dtype=torch.float64), atol=1e-12, rtol=0
        )
        expected_g = by_hand.weighted_sum(expected, words[row, :length].tolist())
        torch.testing.assert_close(g[row], torch.tensor(expected_g, dtype=torch.float64), atol=1e-12, rtol=0)


def test_without_lengths_every_position_is_a_word():
    attention, words, _ = attention_and_words()
    assert torch.equal(attention(words), attention(words, [6, 6, 6, 6]))
    assert torch.equal(attention.weights(words), attention.weights(words, torch.tensor([6, 6, 6, 6])))


def test_a_sentence_alone_equals_the_sentence_in_a_padded_batch():
    attention, words, lengths = attention_and_words(torch.float32)
    together = attention(words, lengths)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(together[row], attention(words[row : row + 1, :length])[0], atol=1e-6, rtol=0)


def test_nan_at_padding_reaches_neither_output_nor_gradient():
    attention, words, lengths = attention_and_words()
    expected = attention(words, lengths)
    words[1, 1:] = torch.nan
    words.requires_grad_()
    g = attention(words, lengths)
    assert torch.equal(g, expected)
    g.sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in (words, *attention.parameters()))


def test_nan_in_one_sentence_stays_there():
    attention, words, lengths = attention_and_words()
    expected = attention(words, lengths)
    words[2, 0, 0] = torch.nan
    g = attention(words, lengths)
    assert g[2].isnan().all()
    assert torch.equal(g[[0, 1, 3]], expected[[0, 1, 3]])


def test_gradients_equal_finite_differences():
    attention, words, lengths = attention_and_words()
    assert torch.autograd.gradcheck(lambda words: attention(words, lengths), words.requires_grad_())


def test_compiled_equals_eager():
    attention, words, lengths = attention_and_words()
    compiled = torch.compile(attention, fullgraph=True, dynamic=True, backend="aot_eager")
    torch.testing.assert_close(compiled(words, lengths), attention(words, lengths))


def test_autocast_is_near_float32():
    attention, words, lengths = attention_and_words(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        g = attention(words, lengths)
    torch.testing.assert_close(g.float(), attention(words, lengths), atol=2e-2, rtol=0)  # bfloat16: 8 bits


@pytest.mark.parametrize(
    ("shape", "lengths", "message"),
    [
        ((4, 5), None, r"words must have shape \(B, N, 5\), got \(4, 5\)"),
        ((4, 6, 3), None, r"words must have shape \(B, N, 5\), got \(4, 6, 3\)"),
        ((4, 0, 5), None, "at least one word"),
        ((4, 6, 5), [6, 6], r"lengths must have shape \(4,\)"),
        ((4, 6, 5), [6, 6, 0, 6], "sequence 2 has length 0"),
        ((4, 6, 5), [6, 7, 1, 6], "sequence 1 has length 7"),
        ((4, 6, 5), [6.0, 1.0, 1.0, 6.0], "lengths must be integers"),
    ],
)
def test_wrong_input_is_named(shape, lengths, message):
    attention = AdditiveAttention(5)
    for method in (attention, attention.weights):
        with pytest.raises(ValueError, match=message):
            method(torch.zeros(shape), lengths)


def test_hidden_size_must_be_positive():
    with pytest.raises(ValueError, match="hidden_size must be at least 1, got 0"):
        AdditiveAttention(0)
