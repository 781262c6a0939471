"""The fused recurrence equals the reference in float64: outputs and every gradient.

Without a GPU the kernels run in Triton's interpreter (conftest.py), which knows no bfloat16 and is slow: small sizes.
"""

import pytest
import torch

pytest.importorskip("triton")

from sentence_state import SentenceStateLSTM
from sentence_state.ops.equations import Weights
from sentence_state.ops.fused import autograd, backward_pass, few_words, forward_pass, plan
from sentence_state.ops.fused.layout import put_columns
from sentence_state.ops.recurrence import recurrence

from .fused_cases import DEVICE, random_case

# Each type with its tolerance, relative in the norm. Inputs and weights have few enough digits for all of them.
FLOAT32, BFLOAT16, FLOAT16 = (torch.float32, 1e-5), (torch.bfloat16, 2e-2), (torch.float16, 2e-2)


def outputs_and_gradients(case, dtype, backend, need_words, need_sentence, memory="normal"):
    x, lengths, weights, num_steps, gates, dropout = case
    x = x.to(dtype).requires_grad_()
    weights = Weights(*(weight.detach().to(dtype).requires_grad_() for weight in weights))
    dropout = dropout and tuple(mask.to(dtype) for mask in dropout)
    state = recurrence(x, lengths, weights, num_steps, gates, dropout, need_words, need_sentence, backend, memory)
    outputs = ([state.h] if need_words else []) + ([state.g, state.c_g] if need_sentence else [])
    generator = torch.Generator().manual_seed(0)
    directions = [torch.randn(o.shape, generator=generator).bfloat16().to(o) for o in outputs]
    loss = sum((output * direction).sum() for output, direction in zip(outputs, directions, strict=True))
    gradients = torch.autograd.grad(loss, [x, *weights], allow_unused=True, materialize_grads=True)
    names = [*(f"output {place}" for place in range(len(outputs))), "x", *weights._fields]
    return dict(zip(names, [*outputs, *gradients], strict=True))


def assert_equal(case, precision, need_words=True, need_sentence=True, memory="normal"):
    dtype, tolerance = precision
    expected = outputs_and_gradients(case, torch.float64, "reference", need_words, need_sentence)
    found = outputs_and_gradients(case, dtype, "triton", need_words, need_sentence, memory)
    # One number, or a few, can be what is left of greater ones: in plain PyTorch too a gradient of one number misses
    # 1e-5 in float32, and one of seven misses 2e-2 in bfloat16. They are compared as one vector.
    few = [name for name, value in expected.items() if value.numel() < (4 if dtype == torch.float32 else 64)]
    for names in [[name] for name in expected if name not in few] + [few] * bool(few):
        value, other = (torch.cat([part[name].double().flatten() for name in names]) for part in (expected, found))
        error, size = (other - value).norm(), value.norm()
        assert error <= tolerance * size + (1e-12 if size > 1e-9 else 1e-5), (
            f"{', '.join(names)}: {error / size:.1e} at {case[0].shape}"
        )


@pytest.fixture(autouse=True)
def launches_are_made_anew():
    """Tests change what they are made of."""
    plan.Launches.kept.clear()


@pytest.fixture(autouse=True)
def uninitialised_memory_is_nan():
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("gates", ["paper", "sharp"])
@pytest.mark.parametrize(
    ("B", "N", "H", "num_steps"),
    [(2, 1, 1, 3), (2, 3, 5, 4), (2, 20, 3, 3), (3, 4, 17, 2)],
)
@pytest.mark.parametrize("ragged_with_dropout", [False, True])
def test_it_equals_the_reference(gates, B, N, H, num_steps, ragged_with_dropout):
    case = random_case(B, N, H + 1, H, num_steps, gates, ragged_with_dropout, ragged_with_dropout)
    assert_equal(case, FLOAT32)


@pytest.mark.parametrize("num_steps", [1, 2, 4])
@pytest.mark.parametrize("need_words", [False, True])
def test_it_equals_the_reference_where_only_one_output_is_needed(num_steps, need_words):
    assert_equal(random_case(2, 5, 4, 6, num_steps, "paper", True, True), FLOAT32, need_words, not need_words)


@pytest.mark.parametrize(("memory", "gates", "need_words"), [("high", "paper", True), ("low", "sharp", False)])
@pytest.mark.parametrize(("B", "N", "H", "num_steps"), [(16, 1, 3, 2), (3, 7, 3, 3), (1, 5, 66, 2)])
@pytest.mark.parametrize("columns", [0, 64, 128])
def test_products_of_few_words_give_the_same(monkeypatch, columns, memory, gates, need_words, B, N, H, num_steps):
    """On a card they are for 16-bit types, which the interpreter does not take."""
    monkeypatch.setattr(few_words, "has_few_words", lambda x: True)
    monkeypatch.setattr(few_words, "WORD_ROWS", 16)
    monkeypatch.setattr(few_words, "WORD_PROGRAMS", range(1, 100 if columns else 1))
    monkeypatch.setattr(few_words, "GRADIENT_PROGRAMS", {columns: range(1, 100)} if columns else {})
    monkeypatch.setattr(few_words, "ROWS_IN_PARTS", 10)
    assert_equal(random_case(B, N, 4, H, num_steps, gates, True, True), FLOAT32, need_words, memory=memory)


def test_a_batch_of_more_sentences_than_a_grid_holds_is_parted(monkeypatch):
    options = plan.Options(2, False, True, True, 0, False)
    parts = plan.groups(200_000, 1, 16, 64, options)
    assert all(part.stop - part.start <= 65_535 for part in parts)
    assert (parts[0].start, parts[-1].stop) == (0, 200_000)
    assert plan.groups(65_535, 1, 16, 64, options) == [slice(0, 65_535)]
    monkeypatch.setattr(plan, "MOST_SENTENCES", 2)
    assert_equal(random_case(5, 3, 4, 5, 3, "paper", True, True), FLOAT32, memory="high")


def test_groups_of_any_size_give_the_same(monkeypatch):
    monkeypatch.setattr(plan, "GROUP_ROWS", (11, 11))
    monkeypatch.setattr(backward_pass, "CHUNK_ROWS", 20)
    assert_equal(random_case(5, 6, 4, 5, 5, "sharp", True, True), FLOAT32)


@pytest.mark.parametrize("need_words", [False, True])
@pytest.mark.parametrize("together", [1, 2, 3])
def test_any_number_of_steps_together_gives_the_same(monkeypatch, together, need_words):
    monkeypatch.setattr(backward_pass, "CHUNK_ROWS", 2 * 3 * together)
    assert_equal(random_case(2, 3, 4, 5, 5, "paper", True, True), FLOAT32, need_words)


@pytest.mark.parametrize("memory", ["normal", "high"])
def test_the_product_of_many_rows_in_two_parts_gives_the_same(monkeypatch, memory):
    monkeypatch.setattr(forward_pass, "SPLIT_ROWS", 1)
    assert_equal(random_case(3, 5, 4, 5, 4, "sharp", True, True), FLOAT32, memory=memory)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_columns_of_any_width_and_place_are_put(dtype):
    for width, start, columns, offset in [(16, 4, 8, 0), (16, 4, 8, 4), (16, 4, 8, 3), (16, 3, 8, 0), (15, 4, 8, 0)]:
        rows = torch.randn(2, 3, width).to(dtype)
        expected = rows.clone()
        values = torch.randn(3 * columns + offset).to(dtype)[offset:].view(3, columns)
        expected[..., start : start + columns] = values
        put_columns(rows, values, start)
        assert torch.equal(rows, expected)


def test_no_group_has_more_products_than_kernels_can_count():
    for keep in ((0, False), (1, False), (2, False), (1, True)):
        found = plan.groups(1000, 1000, 304, 1216, plan.Options(9, False, True, True, *keep))
        assert [group.start for group in found[1:]] == [group.stop for group in found[:-1]]
        assert (found[0].start, found[-1].stop) == (0, 1000)
        assert max(group.stop - group.start for group in found) * 1000 * 8 * 304 < 2**31
    high = plan.Options(3, False, True, True, 1, True)
    assert len(plan.groups(4, 530_000, 304, 1216, high)) == 4  # 0.6 of what can be counted, each
    wide = plan.groups(
        512, 1024, 304, 3 * 304 + 4096, high
    )  # rows [h_left, h, h_right, x], of more numbers than products
    assert max(group.stop - group.start for group in wide) * 1024 * (3 * 304 + 4096) < 2**31


@pytest.mark.parametrize(
    ("num_steps", "need_words", "need_sentence"),
    [(1, True, True), (2, True, True), (3, False, True), (4, True, True), (4, False, True), (5, True, False)],
)
@pytest.mark.parametrize("memory", ["low", "high"])
def test_more_or_less_memory_gives_the_same(monkeypatch, num_steps, need_words, need_sentence, memory):
    monkeypatch.setattr(plan, "GROUP_ROWS", (7, 7))
    monkeypatch.setattr(plan, "MOST_PRODUCTS", 7 * 8 * 16)
    case = random_case(3, 4, 4, 5, num_steps, "paper" if num_steps % 2 else "sharp", True, True)
    assert_equal(case, FLOAT32, need_words, need_sentence, memory)
    expected = outputs_and_gradients(case, torch.float64, "reference", need_words, need_sentence)
    found = outputs_and_gradients(case, torch.float64, "reference", need_words, need_sentence, memory)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value)


def test_products_are_kept_by_default_while_they_are_few(monkeypatch):
    case, kept, forward = random_case(2, 3, 4, 5, 3, "paper", False, False), [], forward_pass.forward
    monkeypatch.setattr(
        forward_pass, "forward", lambda *arguments: kept.append(arguments[-1].keep_products) or forward(*arguments)
    )
    bytes_kept = 2 * 3 * (3 * 8 * 16 + 2 * 4 * 16) * 4  # three products, two rows of four parts, all padded to 16
    for most in (bytes_kept, bytes_kept - 1):
        monkeypatch.setattr(autograd, "most_bytes", lambda card, most=most: most)
        outputs_and_gradients(case, torch.float32, "triton", True, True, "auto")
    assert kept == [True, False]


@pytest.mark.parametrize("gates", ["paper", "sharp"])
def test_sums_over_long_texts_are_added_up_in_parts(gates, monkeypatch):
    monkeypatch.setattr(plan, "SUMS_AT_ONCE", 4)
    assert plan.Tiling.of(38, 16).tiles == 10
    assert_equal(random_case(2, 38, 4, 5, 3, gates, True, False), FLOAT32)


@pytest.mark.parametrize(("D", "H"), [(40, 5), (5, 40)])
def test_words_may_be_longer_or_shorter_than_states(D, H):
    assert_equal(random_case(2, 4, D, H, 3, "paper", True, False), FLOAT32)


def test_lengths_and_weights_in_any_memory_order_give_the_same():
    def in_other_order(tensor):
        return tensor.t().contiguous().t() if tensor.dim() == 2 else torch.stack([tensor, tensor + 1], dim=1)[:, 0]

    x, lengths, weights, *rest = random_case(3, 4, 4, 5, 3, "paper", True, False)
    weights = Weights(*(in_other_order(weight.detach()) for weight in weights))
    assert not any(weight.is_contiguous() for weight in weights)
    assert_equal((x, in_other_order(lengths), weights, *rest), FLOAT32)


def test_no_sentences_give_no_states():
    encoder = SentenceStateLSTM(3, 4, backend="triton", device=DEVICE)
    words, sentence = encoder(torch.randn(0, 5, 3, device=DEVICE))
    assert words.shape == (0, 5, 4)
    assert sentence.shape == (0, 4)


def test_two_runs_are_equal_bit_by_bit():
    case = random_case(2, 400 if DEVICE == "cuda" else 5, 4, 5, 3, "paper", True, False)
    runs = [outputs_and_gradients(case, torch.float32, "triton", True, True) for _ in range(2)]
    for name in runs[0]:
        assert torch.equal(runs[0][name], runs[1][name]), name


@pytest.mark.gpu
@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16, FLOAT16], ids=["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("gates", ["paper", "sharp"])
@pytest.mark.parametrize("H", [1, 7, 64, 100, 300, 512])
def test_it_equals_the_reference_at_full_size(H, gates, precision):
    torch.backends.cuda.matmul.allow_tf32 = False
    for N in (1, 2, 3, 31, 100, 1000):
        assert_equal(random_case(4, N, H, H, 9, gates, True, True), precision)


@pytest.mark.gpu
@pytest.mark.parametrize("memory", ["low", "normal", "high"])
@pytest.mark.parametrize("need_words", [False, True])
def test_groups_of_sentences_and_any_memory_on_a_card(memory, need_words):
    case = random_case(40, 200, 100, 100, 9, "sharp", True, True)
    assert_equal(case, BFLOAT16, need_words, need_sentence=True, memory=memory)


@pytest.mark.gpu
def test_the_encoder_uses_it_under_autocast_and_in_a_graph():
    torch.manual_seed(0)
    encoder = SentenceStateLSTM(64, 64, device="cuda")
    x, lengths = torch.randn(5, 12, 64, device="cuda"), torch.tensor([12, 3, 1, 7, 12], device="cuda")
    expected = SentenceStateLSTM(64, 64, device="cuda", backend="reference")
    expected.load_state_dict(encoder.state_dict())
    with torch.autocast("cuda", dtype=torch.bfloat16):
        encoder(x, lengths).sentence.sum().backward()
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            words, sentence = encoder(x, lengths)
    graph.replay()
    for ours, theirs in zip((words, sentence), expected(x, lengths), strict=True):
        assert (ours - theirs).norm() / theirs.norm() < 2e-2  # bfloat16
    assert all(parameter.grad.dtype == torch.float32 for parameter in encoder.parameters())
