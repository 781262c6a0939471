import pytest
import torch

from sentence_state.heads import Classifier
from tests import by_hand


def inputs():
    torch.manual_seed(0)
    return torch.randn(3, 4, 5, dtype=torch.float64), torch.randn(3, 5, dtype=torch.float64), torch.tensor([4, 1, 2])


def by_hand_logits(classifier, g):
    rows = zip(classifier.output.weight.tolist(), classifier.output.bias.tolist(), strict=True)
    return torch.tensor([by_hand.dot(weight, g) + bias for weight, bias in rows], dtype=torch.float64)


def test_logits_are_linear_in_the_sentence_vector():
    words, sentence, lengths = inputs()
    classifier = Classifier(5, 2, dtype=torch.float64)
    logits = classifier(words, sentence, lengths)
    for row in range(3):
        torch.testing.assert_close(logits[row], by_hand_logits(classifier, sentence[row].tolist()), atol=1e-12, rtol=0)


def test_with_attention_logits_are_linear_in_the_attended_words():
    words, sentence, lengths = inputs()
    classifier = Classifier(5, 2, readout="attention", dtype=torch.float64)
    logits = classifier(words, sentence, lengths)
    W, u = classifier.attention.W, classifier.attention.u
    for row, length in enumerate(lengths.tolist()):
        h = words[row, :length].tolist()
        weights = by_hand.attention(h, W.weight.tolist(), W.bias.tolist(), u.weight[0].tolist())
        torch.testing.assert_close(
            logits[row], by_hand_logits(classifier, by_hand.weighted_sum(weights, h)), atol=1e-12, rtol=0
        )


def test_with_max_logits_are_linear_in_the_sentence_vector_and_the_largest_value_of_each_unit_over_the_words():
    words, sentence, lengths = inputs()
    words = words - 10  # all negative: the zero at padding would win
    classifier = Classifier(5, 2, readout="max", dtype=torch.float64)
    logits = classifier(words, sentence, lengths)
    for row, length in enumerate(lengths.tolist()):
        largest = [max(word[unit] for word in words[row, :length].tolist()) for unit in range(5)]
        expected = by_hand_logits(classifier, [*sentence[row].tolist(), *largest])
        torch.testing.assert_close(logits[row], expected, atol=1e-12, rtol=0)


def test_with_steps_logits_are_linear_in_the_attended_sentence_vectors():
    torch.manual_seed(0)
    steps = torch.randn(3, 4, 5, dtype=torch.float64)
    classifier = Classifier(5, 2, readout="steps", dtype=torch.float64)
    logits = classifier(None, steps)
    W, u = classifier.attention.W, classifier.attention.u
    for row in range(3):
        g = steps[row].tolist()
        weights = by_hand.attention(g, W.weight.tolist(), W.bias.tolist(), u.weight[0].tolist())
        expected = by_hand_logits(classifier, by_hand.weighted_sum(weights, g))
        torch.testing.assert_close(logits[row], expected, atol=1e-12, rtol=0)


def test_each_reads_its_own_input_only():
    words, sentence, lengths = inputs()
    plain, attended = Classifier(5, 2, dtype=torch.float64), Classifier(5, 2, readout="attention", dtype=torch.float64)
    assert torch.equal(plain(words, sentence, lengths), plain(words + 1, sentence))
    assert torch.equal(attended(words, sentence, lengths), attended(words, sentence + 1, lengths))


@pytest.mark.parametrize("readout", ["sentence", "attention", "max"])
def test_state_dict_round_trip(readout):
    words, sentence, lengths = inputs()
    first, second = (Classifier(5, 2, readout, dtype=torch.float64) for _ in range(2))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(words, sentence, lengths), second(words, sentence, lengths))


def test_wrong_sizes_are_named():
    with pytest.raises(ValueError, match="num_classes must be at least 1, got 0"):
        Classifier(5, 0)
    with pytest.raises(ValueError, match=r"sentence must have shape \(B, 5\), got \(3, 4\)"):
        Classifier(5, 2)(torch.zeros(3, 4, 4), torch.zeros(3, 4))
    with pytest.raises(ValueError, match=r"words must have shape \(B, N, 5\), got \(3, 4, 4\)"):
        Classifier(5, 2, readout="attention")(torch.zeros(3, 4, 4), torch.zeros(3, 5))
