import itertools

import pytest
import torch

from sentence_state.heads import CRF, AllowedTransitions, allowed_transitions
from tests import by_hand

from .crf_cases import BIO, BIOES, H, both_kinds, random_crf


def spans_are_well_formed(tags, scheme):
    """Reads labels from left to right with the type of the open span in hand."""
    inside = None
    for label in tags:
        prefix, _, type = label.partition("-")
        if prefix in "IE" and type != inside:
            return False
        if scheme == "BIOES" and inside is not None and prefix not in "IE":
            return False
        inside = type if prefix in "BI" else None
    return scheme == "BIO" or inside is None


@pytest.mark.parametrize(("scheme", "labels"), [("BIO", BIO), ("BIOES", BIOES)])
def test_allowed_transitions_allow_exactly_the_well_formed_sequences(scheme, labels):
    masks = [mask.tolist() for mask in allowed_transitions(labels, scheme)]
    for length in (1, 2, 3):
        for tags in itertools.product(range(len(labels)), repeat=length):
            well_formed = spans_are_well_formed([labels[tag] for tag in tags], scheme)
            assert by_hand.is_allowed(tags, *masks) == well_formed, [labels[tag] for tag in tags]


@both_kinds
@pytest.mark.parametrize(("scheme", "labels"), [("BIO", BIO), ("BIOES", BIOES)])
def test_decoding_never_uses_a_forbidden_transition(kind, scheme, labels):
    for seed in range(25):
        torch.manual_seed(seed)
        crf = random_crf(kind, len(labels), allowed_transitions(labels, scheme), torch.float32, scale=3)
        words, lengths = torch.randn(6, 9, H), torch.randint(1, 10, (6,))
        for tags in (crf.decode(words, lengths)[0][:, None], crf.decode_n_best(words, lengths, 4)[0]):
            for row, length in enumerate(lengths.tolist()):
                for best in tags[row, :, :length].tolist():
                    assert best[0] == -1 or spans_are_well_formed([labels[tag] for tag in best], scheme)


@both_kinds
def test_forbidden_labels_have_marginal_zero(kind):
    torch.manual_seed(0)
    crf = random_crf(kind, len(BIO), allowed_transitions(BIO, "BIO"), torch.float32)
    marginals = crf.marginals(torch.randn(4, 3, H))
    assert (marginals[:, 0, [2, 4]] == 0).all()  # no sentence begins with I-
    torch.testing.assert_close(marginals.sum(2), torch.ones(4, 3), atol=1e-6, rtol=0)  # float32


@both_kinds
@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (["I-PER", "O", "O"], "tags of sentence 1 must be allowed, word 0 of [2, 0, 0]"),
        (["O", "B-LOC", "I-PER"], "word 2 of [0, 3, 2]"),
    ],
)
def test_gold_tags_that_break_the_constraint_are_named(kind, gold, message):
    crf = CRF(H, len(BIO), kind, allowed_transitions(BIO, "BIO"))
    tags = torch.zeros(2, 5, dtype=torch.long)
    tags[1, :3] = torch.tensor([BIO.index(label) for label in gold])
    with pytest.raises(ValueError) as error:  # noqa: PT011 the message is compared as plain text
        crf.log_likelihood(torch.zeros(2, 5, H), tags, [5, 3])
    assert message in str(error.value)


def test_gold_tags_that_may_not_end_there_are_named():
    crf = CRF(H, len(BIOES), allowed=allowed_transitions(BIOES, "BIOES"))
    tags = torch.tensor([[BIOES.index(label) for label in ("O", "B-PER", "E-PER")]])
    assert crf.log_likelihood(torch.zeros(1, 3, H), tags).isfinite()
    with pytest.raises(ValueError, match="word 1 of"):
        crf.log_likelihood(torch.zeros(1, 3, H), tags, [2])


@both_kinds
def test_compiled_code_gives_forbidden_gold_tags_probability_zero(kind):
    crf = CRF(H, len(BIO), kind, allowed_transitions(BIO, "BIO"))
    compiled = torch.compile(crf.log_likelihood, fullgraph=True, backend="aot_eager")
    likelihood = compiled(torch.ones(2, 2, H), torch.tensor([[0, 2], [1, 2]]))  # O I-PER, B-PER I-PER
    assert likelihood[0] == -torch.inf
    assert likelihood[1].isfinite()


@both_kinds
def test_where_no_sequence_is_allowed_nothing_crashes(kind):
    nothing = AllowedTransitions(torch.ones(2) > 0, torch.zeros(2, 2) > 0, torch.ones(2) > 0)
    crf = random_crf(kind, 2, nothing)
    words = torch.randn(2, 3, H, dtype=torch.float64, requires_grad=True)
    tags, scores = crf.decode(words, [3, 1])
    assert tags[0].tolist() == [-1, -1, -1]
    assert scores[0] == -torch.inf
    assert tags[1, 0] in (0, 1)
    assert scores[1].isfinite()
    assert crf.decode_n_best(words, [3, 1], 3)[1][0].tolist() == [-torch.inf] * 3
    assert crf.marginals(words, [3, 1]).isfinite().all()
