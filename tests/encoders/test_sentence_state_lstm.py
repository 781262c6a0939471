"""`SentenceStateLSTM` against the oracle, and what the paper says of it."""

import copy
import itertools

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.flop_counter import FlopCounterMode

from sentence_state import SentenceStateLSTM
from tests import by_hand

from .random_weights import encoder_with_random_weights

LENGTHS = [4, 1, 3]


def as_lists(encoder):
    return {name: parameter.tolist() for name, parameter in encoder.state_dict().items()}


@pytest.mark.parametrize("gates", ["paper", "sharp"])
@pytest.mark.parametrize(("window", "nodes"), list(itertools.product([1, 2, 3], [0, 1, 2, 3])))
@pytest.mark.parametrize("num_steps", [1, 2, 3, 4])
def test_it_equals_equations_2_and_3_by_hand(gates, window, nodes, num_steps):
    torch.manual_seed(window + 4 * nodes + 16 * num_steps)
    encoder = encoder_with_random_weights(window=window, sentence_nodes=nodes, gates=gates, num_steps=num_steps)
    x = torch.randn(len(LENGTHS), max(LENGTHS), 3, dtype=torch.float64)
    words, sentence = encoder(x, LENGTHS)
    for row, length in enumerate(LENGTHS):
        h, g = by_hand.sentence_state_lstm(x[row, :length].tolist(), as_lists(encoder), num_steps, window, nodes, gates)
        expected = torch.tensor(h, dtype=torch.float64)
        torch.testing.assert_close(words[row, :length], expected, rtol=0, atol=1e-10)
        first_node = torch.tensor(g[0], dtype=torch.float64) if nodes else expected.mean(dim=0)
        torch.testing.assert_close(sentence[row], first_node, rtol=0, atol=1e-10)
        assert not words[row, length:].any()


@pytest.mark.parametrize("gates", ["paper", "sharp"])
@pytest.mark.parametrize(("window", "num_steps"), list(itertools.product([1, 2], [1, 2, 4])))
def test_the_released_variant_equals_the_released_code_by_hand(gates, window, num_steps):
    torch.manual_seed(window + 4 * num_steps)
    encoder = encoder_with_random_weights(3, 3, variant="released", window=window, gates=gates, num_steps=num_steps)
    x = torch.randn(len(LENGTHS), max(LENGTHS), 3, dtype=torch.float64)
    words, sentence = encoder(x, LENGTHS)
    for row, length in enumerate(LENGTHS):
        h, g = by_hand.released_s_lstm(x[row, :length].tolist(), as_lists(encoder), num_steps, window, gates)
        torch.testing.assert_close(words[row, :length], torch.tensor(h, dtype=torch.float64), rtol=0, atol=1e-10)
        torch.testing.assert_close(sentence[row], torch.tensor(g, dtype=torch.float64), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gates": "sharp"},
        {"window": 2, "sentence_nodes": 2},
        {"sentence_nodes": 0},
        {"input_size": 2, "variant": "released"},
    ],
)
def test_gradients_pass_gradcheck_for_input_and_every_parameter(options):
    torch.manual_seed(0)
    encoder = encoder_with_random_weights(num_steps=3, **options)
    names, values = zip(*encoder.named_parameters(), strict=True)
    x = torch.randn(2, 3, encoder.input_size, dtype=torch.float64, requires_grad=True)

    def run(x, *values):
        return torch.func.functional_call(encoder, dict(zip(names, values, strict=True)), (x, torch.tensor([3, 1])))

    assert torch.autograd.gradcheck(run, (x, *values))


@pytest.mark.parametrize(("variant", "reach"), [("paper", lambda T, w: (T - 1) * w), ("released", lambda T, w: T * w)])
@pytest.mark.parametrize(("num_steps", "window"), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2)])
def test_a_word_depends_on_exactly_the_words_within_reach(variant, reach, num_steps, window):
    """Without sentence node in the paper's variant; the released one has a node, whose gate s is closed here."""
    torch.manual_seed(0)
    nodes = 1 if variant == "released" else 0
    encoder = encoder_with_random_weights(
        3, 3, scale=0.5, variant=variant, sentence_nodes=nodes, num_steps=num_steps, window=window, gates="sharp"
    )
    if nodes:
        with torch.no_grad():
            encoder.V.zero_()
            encoder.b[4 * 3 : 5 * 3] = -1e4
    x = torch.randn(1, 15, 3, dtype=torch.float64, requires_grad=True)
    middle = 7
    encoder(x).words[0, middle].sum().backward()
    touched = x.grad[0].abs().sum(dim=1) > 0
    distance = (torch.arange(15) - middle).abs()
    assert torch.equal(touched, distance <= reach(num_steps, window))


def test_the_sentence_state_reaches_one_step_further_than_a_word():
    torch.manual_seed(0)
    encoder = encoder_with_random_weights(num_steps=1)
    x = torch.randn(1, 5, 3, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(encoder(x).sentence.sum(), x, allow_unused=True)
    assert gradient is None or not gradient.any()  # step 1 reads h^0 only
    (gradient,) = torch.autograd.grad(encoder(x, num_steps=2).sentence.sum(), x)
    assert (gradient.abs().sum(dim=2) > 0).all()  # step 2 reads every word


@pytest.mark.parametrize("gates", ["paper", "sharp"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_the_trace_holds_every_state_and_gates_that_sum_to_one(gates, nodes):
    torch.manual_seed(0)
    encoder = encoder_with_random_weights(num_steps=4, sentence_nodes=nodes, gates=gates)
    x, lengths = torch.randn(3, 4, 3, dtype=torch.float64), torch.tensor(LENGTHS)
    trace = encoder.trace(x, lengths)
    for t in range(1, 5):
        words, sentence = encoder(x, lengths, num_steps=t)
        torch.testing.assert_close(trace.words[t], words, rtol=0, atol=1e-12)
        torch.testing.assert_close(trace.sentence[t, :, 0], sentence, rtol=0, atol=1e-12)
    torch.testing.assert_close(trace.word_gates.sum(dim=3), torch.ones_like(trace.words[1:]))
    total = trace.sentence_word_gates.sum(dim=2) + trace.sentence_node_gates.sum(dim=2)
    torch.testing.assert_close(total, torch.ones_like(total))
    assert not trace.sentence_word_gates[:, 1, 1:].any()  # padding gives nothing


def test_a_trace_takes_a_mask_for_lengths_and_a_number_of_steps():
    torch.manual_seed(0)
    encoder = encoder_with_random_weights(num_steps=4)
    x, lengths = torch.randn(3, 4, 3, dtype=torch.float64), torch.tensor(LENGTHS)
    by_mask = encoder.trace(x, mask=torch.arange(4) < lengths[:, None], num_steps=2)
    for found, expected in zip(by_mask, encoder.trace(x, lengths), strict=True):
        steps = 3 if len(expected) == 5 else 2  # states have the initial one too
        assert torch.equal(found, expected[:steps])


def test_the_papers_gates_stay_within_the_range_that_a_squashed_softmax_allows():
    torch.manual_seed(0)
    trace = encoder_with_random_weights(hidden_size=8, scale=5.0).trace(torch.randn(2, 6, 3, dtype=torch.float64))
    e = torch.e
    assert trace.word_gates.min() >= 1 / (1 + 4 * e) - 1e-15  # float64 rounding at full saturation
    assert trace.word_gates.max() <= e / (e + 4) + 1e-15


def test_what_is_not_needed_is_none_and_the_rest_is_unchanged():
    torch.manual_seed(0)
    encoder = encoder_with_random_weights()
    x, lengths = torch.randn(3, 4, 3, dtype=torch.float64), torch.tensor(LENGTHS)
    words, sentence = encoder(x, lengths)
    only_words = encoder(x, lengths, need_sentence=False)
    only_sentence = encoder(x, lengths, need_words=False)
    assert only_words.sentence is None
    assert only_sentence.words is None
    assert torch.equal(only_words.words, words)
    assert torch.equal(only_sentence.sentence, sentence)


def products(run):
    """Multiply-adds of the matrix products that a call does."""

    def addmm_(out, left, right, **_):  # not among the products that the counter knows
        return 2 * left[0] * left[1] * right[1]

    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: addmm_}) as counter:
        run()
    return counter.get_total_flops() // 2


def test_the_exact_savings_are_used():
    B, N, H, T = 2, 50, 8, 5  # in float64: FlopCounterMode does not know oneDNN's products of float32
    encoder, x = SentenceStateLSTM(H, H, num_steps=T).double(), torch.randn(B, N, H, dtype=torch.float64)
    a_word_step, a_node_step = B * N * 7 * H * 3 * H, B * N * H * H
    inputs = B * N * 7 * H * H
    both = products(lambda: encoder(x))
    few = inputs + (T - 1) * (a_word_step + a_node_step)
    assert few < both < 1.15 * few  # the first step costs next to nothing, the small products of g fill the rest
    assert both - products(lambda: encoder(x, need_words=False)) >= a_word_step
    assert both - products(lambda: encoder(x, need_sentence=False)) >= a_node_step


def test_step_dropout_keeps_one_mask_through_all_steps_and_rests_in_evaluation():
    torch.manual_seed(0)
    encoder = encoder_with_random_weights(hidden_size=16, step_dropout=0.5, num_steps=6)
    plain = encoder_with_random_weights(hidden_size=16, num_steps=6)
    plain.load_state_dict(encoder.state_dict())
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    encoder.eval()
    assert torch.equal(encoder(x).words, plain(x).words)
    encoder.train()
    torch.manual_seed(1)
    keep_h = torch.empty(2, 5, 16, dtype=torch.float64).bernoulli_(0.5) / 0.5
    keep_g = torch.empty(2, 1, 16, dtype=torch.float64).bernoulli_(0.5) / 0.5
    torch.manual_seed(1)
    words, sentence = encoder(x)
    from sentence_state.ops.recurrence import initial_state, input_term, step

    _, weights = plain._prepare(x)
    state = initial_state(x, None, weights)
    for t in range(6):
        state = step(state, input_term(x, weights), None, weights, "paper", first=t == 0).state
        if t < 5:
            state = state._replace(h=state.h * keep_h, g=state.g * keep_g)
    torch.testing.assert_close(words, state.h, rtol=0, atol=1e-12)
    torch.testing.assert_close(sentence, state.g[:, 0], rtol=0, atol=1e-12)


def test_bias_can_be_left_out():
    encoder = SentenceStateLSTM(3, 4, bias=False)
    assert {name for name, _ in encoder.named_parameters()} == {
        "W", "U", "V", "sentence_W", "sentence_U", "sentence_U_f", "h_0", "c_0",
    }  # fmt: skip
    with_zeros = SentenceStateLSTM(3, 4)
    with_zeros.load_state_dict({**with_zeros.state_dict(), **encoder.state_dict()})
    x = torch.randn(2, 5, 3)
    assert torch.equal(encoder(x).words, with_zeros(x).words)


def test_the_number_of_parameters_is_that_of_the_equations():
    H, D = 300, 300
    count = sum(parameter.numel() for parameter in SentenceStateLSTM(D, H).parameters())
    words = 7 * (3 * H * H + H * D + H * H + H)
    sentence = 3 * (H * H + H * H + H)
    assert count == words + sentence + 2 * H


def test_packed_and_masked_input_equal_lengths():
    torch.manual_seed(0)
    encoder = SentenceStateLSTM(3, 4)
    x, lengths = torch.randn(3, 4, 3), torch.tensor([2, 4, 1])
    by_lengths = encoder(x, lengths)
    by_mask = encoder(x, mask=torch.arange(4) < lengths[:, None])
    packed = encoder(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    for other in (by_mask, packed):
        assert torch.equal(other.words, by_lengths.words)
        assert torch.equal(other.sentence, by_lengths.sentence)


def test_a_quantized_encoder_answers_with_the_weights_that_are_loaded_into_it():
    torch.manual_seed(0)
    encoder, other, x = SentenceStateLSTM(3, 4).eval(), SentenceStateLSTM(3, 4).eval(), torch.randn(2, 5, 3)
    encoder.quantize()
    assert not torch.equal(encoder(x).words, other(x).words)
    torch.nn.Sequential(encoder).load_state_dict(torch.nn.Sequential(other).state_dict())
    assert torch.equal(encoder(x).words, other(x).words)
    encoder.quantize()
    torch.testing.assert_close(encoder(x).words, other(x).words, atol=0.02, rtol=0)  # rounded to 1/127 in every step


def test_the_options_stand_in_the_representation():
    shown = repr(SentenceStateLSTM(3, 4, gates="sharp", halting=0.02, memory="low", bias=False))
    for option in ("3, 4", "num_steps=9", "gates='sharp'", "halting=0.02", "memory='low'", "bias=False"):
        assert option in shown


def test_a_copy_computes_the_same():
    encoder = SentenceStateLSTM(3, 4)
    x = torch.randn(2, 5, 3)
    assert torch.equal(copy.deepcopy(encoder)(x).words, encoder(x).words)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
        ({"input_size": -1}, "input_size must be at least 1, got -1"),
        ({"num_steps": 0}, "num_steps must be at least 1, got 0"),
        ({"window": 0}, "window must be at least 1, got 0"),
        ({"sentence_nodes": -1}, "sentence_nodes must be at least 0, got -1"),
        ({"gates": "soft"}, "gates must be one of 'paper', 'sharp', got 'soft'"),
        ({"variant": "ours"}, "variant must be one of 'paper', 'released', got 'ours'"),
        ({"backend": "cuda"}, "backend must be one of .*, got 'cuda'"),
        ({"step_dropout": 1.0}, r"step_dropout must lie in \[0, 1\), got 1.0"),
        ({"variant": "released"}, "needs input_size == hidden_size and sentence_nodes == 1, got 3, 4 and 1"),
    ],
)
def test_bad_options_say_what_was_expected_and_what_came(options, message):
    with pytest.raises(ValueError, match=message):
        SentenceStateLSTM(**{"input_size": 3, "hidden_size": 4, **options})


@pytest.mark.parametrize("call", ["__call__", "trace"])
def test_num_steps_of_a_call_must_be_positive(call):
    with pytest.raises(ValueError, match="num_steps must be at least 1, got 0"):
        getattr(SentenceStateLSTM(3, 4), call)(torch.randn(1, 2, 3), num_steps=0)


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_encoding_of_every_step_equals_as_many_encodings_with_fewer_steps(nodes):
    torch.manual_seed(0)
    encoder = encoder_with_random_weights(num_steps=4, sentence_nodes=nodes)
    x = torch.randn(len(LENGTHS), max(LENGTHS), 3, dtype=torch.float64)
    words, steps = encoder.encode_steps(x, LENGTHS)
    assert steps.shape == (3, 4, 2)
    torch.testing.assert_close(words, encoder(x, LENGTHS).words, rtol=0, atol=1e-12)
    for t in range(4):
        expected = encoder(x, LENGTHS, num_steps=t + 1).sentence
        torch.testing.assert_close(steps[:, t], expected, rtol=0, atol=1e-12)


def test_step_dropout_acts_on_the_encoding_of_every_step_as_on_the_last():
    torch.manual_seed(0)
    encoder = encoder_with_random_weights(num_steps=3, step_dropout=0.5).train()
    x = torch.randn(len(LENGTHS), max(LENGTHS), 3, dtype=torch.float64)
    torch.manual_seed(1)
    expected = encoder(x, LENGTHS)
    torch.manual_seed(1)
    words, steps = encoder.encode_steps(x, LENGTHS)
    torch.testing.assert_close(words, expected.words, rtol=0, atol=1e-12)
    torch.testing.assert_close(steps[:, -1], expected.sentence, rtol=0, atol=1e-12)


def test_orthogonal_initialisation_makes_every_square_block_orthogonal():
    torch.manual_seed(0)
    encoder = SentenceStateLSTM(7, 6, window=2, sentence_nodes=2, initialisation="orthogonal", dtype=torch.float64)
    for name in ("W", "V", "sentence_W", "sentence_U", "sentence_U_f"):
        for rows in getattr(encoder, name).split(6):
            for block in rows.split(6, dim=1):
                torch.testing.assert_close(block @ block.T, torch.eye(6, dtype=torch.float64))


@pytest.mark.parametrize("options", [{"sentence_nodes": 0}, {"variant": "released", "input_size": 2}])
def test_the_encoding_of_every_step_needs_the_papers_sentence_node(options):
    encoder = encoder_with_random_weights(dtype=torch.float32, **options)
    with pytest.raises(ValueError, match=r'encode_steps needs variant="paper" and a sentence node'):
        encoder.encode_steps(torch.randn(4, 5, encoder.input_size))
