"""A sentence stops where its own state stops changing: compared with the trace of all steps, sentence by sentence."""

import pytest
import torch

from sentence_state import SentenceStateLSTM
from sentence_state.models import JointModel

from ..models.synthetic import corpus, small

LENGTHS = torch.tensor([5, 1, 9, 3, 7])


def encoder(**options) -> SentenceStateLSTM:
    torch.manual_seed(0)
    made = SentenceStateLSTM(6, 16, 9, **options).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(0, 0.3)
    return made


def inputs() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(5, 9, 6)


def stop_by_hand(
    made: SentenceStateLSTM, sentence: torch.Tensor, threshold: float
) -> tuple[int, torch.Tensor, torch.Tensor]:
    """Steps, words and sentence state of one sentence alone, from the states of all steps."""
    trace = made.trace(sentence[None])
    for t in range(2, made.num_steps + 1):
        change = (trace.sentence[t, 0] - trace.sentence[t - 1, 0]).pow(2).mean(-1).sqrt().max()
        if change <= threshold:
            break
    return t, trace.words[t, 0], trace.sentence[t, 0, 0]


@pytest.mark.parametrize("threshold", [1e-9, 0.003, 0.02, 0.1, 2.0])
@pytest.mark.parametrize("options", [{}, {"gates": "sharp"}, {"sentence_nodes": 2, "window": 2}], ids=str)
def test_every_sentence_of_a_batch_stops_as_it_does_alone(threshold, options):
    made, x = encoder(**options), inputs()
    words, sentence, steps = made.run_until(x * (torch.arange(9) < LENGTHS[:, None])[..., None], LENGTHS, threshold)
    for row, length in enumerate(LENGTHS.tolist()):
        expected_steps, h, g = stop_by_hand(made, x[row, :length], threshold)
        assert steps[row] == expected_steps
        torch.testing.assert_close(words[row, :length], h, atol=1e-5, rtol=1e-5)  # float32
        torch.testing.assert_close(sentence[row], g, atol=1e-5, rtol=1e-5)
        assert (words[row, length:] == 0).all()


def test_the_threshold_decides_and_differs_between_sentences():
    made, x = encoder(gates="sharp"), inputs()
    steps = [made.run_until(x, LENGTHS, threshold)[2] for threshold in (1e-9, 0.01, 2.0)]
    assert (steps[0] == 9).all()
    assert (steps[2] == 2).all()  # after the first step every sentence has the same state
    assert len(steps[1].unique()) > 1


def test_it_is_off_by_default_and_in_training():
    made, x = encoder(), inputs()
    full = made(x, LENGTHS)
    made.halting = 2.0
    torch.testing.assert_close(made(x, LENGTHS).words, encoder()(x, LENGTHS, num_steps=2).words)
    torch.testing.assert_close(made.train()(x, LENGTHS).words, full.words)


def test_one_step_is_one_step():
    made, x = encoder(), inputs()
    words, _, steps = made.run_until(x, None, 0.5, num_steps=1)
    torch.testing.assert_close(words, made(x, num_steps=1).words)
    assert (steps == 1).all()


def test_what_cannot_halt_is_refused():
    with pytest.raises(ValueError, match="halting must be 0"):
        encoder(halting=-1)
    with pytest.raises(ValueError, match=r"needs .*a sentence node"):
        encoder(halting=0.1, sentence_nodes=0)
    bilstm = JointModel.from_examples(corpus(9), small(encoder="BiLSTM"))
    with pytest.raises(ValueError, match=r"halting is for an S-LSTM, .* got BiLSTM"):
        bilstm.predict(["Paris"], halting=0.1)
    steps = JointModel.from_examples(corpus(9), small(readout="steps"))
    with pytest.raises(ValueError, match="got a read-out of all steps"):
        steps.predict(["Paris"], halting=0.1)


def test_predict_halts_for_that_call_only():
    texts = ["Mary was good", "a bad film about New York and its garden"]
    model = JointModel.from_examples(corpus(20), small(num_steps=7))
    full = model.predict(texts)
    shallow = model.predict(texts, halting=2.0)
    assert model.predict(texts) == full != shallow
    model.encoder.num_steps = 2
    for answer, expected in zip(shallow, model.predict(texts), strict=True):
        assert answer["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-5)
