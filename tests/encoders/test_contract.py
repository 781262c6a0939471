"""What every encoder promises, whichever it is: one contract, run over the dictionary and the options that matter."""

import copy
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from sentence_state.encoders import CNN, ENCODERS, Transformer
from sentence_state.encoders.encoding import check_lengths

D, H, LENGTHS = 5, 8, [7, 1, 4, 2]

CASES = {
    **ENCODERS,
    "LSTM, coupled": partial(ENCODERS["LSTM"], cell="coupled"),
    "2 stacked LSTM": partial(ENCODERS["LSTM"], num_layers=2),
    "BiLSTM, coupled": partial(ENCODERS["BiLSTM"], cell="coupled"),
    "2 stacked BiLSTM, coupled": partial(ENCODERS["2 stacked BiLSTM"], cell="coupled"),
    "S-LSTM, sharp": partial(ENCODERS["S-LSTM"], gates="sharp"),
    "S-LSTM, 2 nodes, window 2": partial(ENCODERS["S-LSTM"], sentence_nodes=2, window=2),
    "S-LSTM, no node": partial(ENCODERS["S-LSTM"], sentence_nodes=0),
    "S-LSTM, released": lambda D, H, **options: ENCODERS["S-LSTM"](D, D, variant="released", **options),
}


@pytest.fixture(params=CASES)
def encoder(request):
    torch.manual_seed(0)
    return CASES[request.param](D, H).eval()


@pytest.fixture
def batch():
    torch.manual_seed(1)
    return torch.randn(len(LENGTHS), max(LENGTHS), D), torch.tensor(LENGTHS)


def assert_same(ours, theirs, atol=1e-6):  # float32
    torch.testing.assert_close(ours, theirs, rtol=0, atol=atol)


def test_shapes_and_zeros_at_padding(encoder, batch):
    x, lengths = batch
    words, sentence = encoder(x, lengths)
    assert words.shape == (*x.shape[:2], encoder.output_size)
    assert sentence.shape == (len(x), encoder.output_size)
    for row, length in enumerate(LENGTHS):
        assert not words[row, length:].any()
        assert words[row, :length].any(dim=1).all()


def test_a_sentence_gives_the_same_alone_padded_and_in_any_batch(encoder, batch):
    x, lengths = batch
    words, sentence = encoder(x, lengths)
    order = torch.tensor([2, 0, 3, 1])
    shuffled = encoder(x[order], lengths[order])
    longer = encoder(torch.cat([x, torch.randn(len(x), 3, D)], dim=1), lengths)
    for row, length in enumerate(LENGTHS):
        alone = encoder(x[row, :length])
        assert_same(words[row, :length], alone.words)
        assert_same(sentence[row], alone.sentence)
    assert_same(shuffled.words, words[order])
    assert_same(shuffled.sentence, sentence[order])
    assert_same(longer.words[:, : x.shape[1]], words)
    assert_same(longer.sentence, sentence)


def test_lengths_mask_and_packed_input_agree(encoder, batch):
    x, lengths = batch
    expected = encoder(x, lengths)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    mask = torch.arange(x.shape[1]) < lengths[:, None]
    by_mask, by_array = encoder(x, mask=mask), encoder(x, mask=mask.numpy())
    for other in (encoder(packed), by_mask, by_array, encoder(x, LENGTHS), encoder(x, lengths.int())):
        assert_same(other.words, expected.words)
        assert_same(other.sentence, expected.sentence)


def test_no_lengths_means_no_padding(encoder, batch):
    x, _ = batch
    full = torch.full((len(x),), x.shape[1])
    for ours, theirs in zip(encoder(x), encoder(x, full), strict=True):
        assert_same(ours, theirs)


def test_what_stands_at_padding_has_no_effect(encoder, batch):
    x, lengths = batch
    spoilt = x.masked_fill((torch.arange(x.shape[1]) >= lengths[:, None])[..., None], torch.nan)
    for ours, theirs in zip(encoder(spoilt, lengths), encoder(x, lengths), strict=True):
        assert torch.equal(ours, theirs)


def test_a_nan_in_one_sentence_never_reaches_another(encoder, batch):
    x, lengths = batch
    expected = encoder(x, lengths)
    spoilt = x.clone()
    spoilt[2, 1] = torch.nan
    words, sentence = encoder(spoilt, lengths)
    assert sentence[2].isnan().any()
    others = [0, 1, 3]
    assert_same(words[others], expected.words[others])
    assert_same(sentence[others], expected.sentence[others])


def test_gradients_reach_every_parameter_and_every_word_but_no_padding(encoder, batch):
    x, lengths = batch
    x = x.requires_grad_()
    encoder.train()
    words, sentence = encoder(x, lengths)
    ((words * torch.randn_like(words)).sum() + (sentence * torch.randn_like(sentence)).sum()).backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name
    is_word = torch.arange(x.shape[1]) < lengths[:, None]
    assert torch.equal(x.grad.any(dim=2), is_word)


def test_float64_agrees_with_float32(encoder, batch):
    x, lengths = batch
    precise = copy.deepcopy(encoder).double()(x.double(), lengths)
    for ours, theirs in zip(encoder(x, lengths), precise, strict=True):
        assert_same(ours.double(), theirs, atol=2e-6)


def test_bfloat16_autocast_is_finite_and_near(encoder, batch):
    x, lengths = batch
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = encoder(x, lengths)
    for ours, theirs in zip(low, encoder(x, lengths), strict=True):
        assert (ours.float() - theirs).norm() / theirs.norm() < 3e-2  # bfloat16


def test_copies_and_state_dicts_compute_the_same(encoder, batch):
    x, lengths = batch
    expected = encoder(x, lengths)
    other = copy.deepcopy(encoder)
    for parameter in other.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    assert not torch.equal(other(x, lengths).sentence, expected.sentence)
    other.load_state_dict(encoder.state_dict())
    for ours, theirs in zip(other(x, lengths), expected, strict=True):
        assert torch.equal(ours, theirs)


def test_no_sentences_give_no_vectors(encoder):
    for lengths in (None, torch.zeros(0, dtype=torch.long)):
        words, sentence = encoder(torch.randn(0, 3, D), lengths)
        assert words.shape == (0, 3, encoder.output_size)
        assert sentence.shape == (0, encoder.output_size)
        (words.sum() + sentence.sum()).backward()


@pytest.mark.parametrize("encoder_class", [CNN, Transformer])  # that of others stands in their own files
def test_exports_and_compiles_with_any_batch_and_length(encoder_class, batch):
    encoder, x, lengths = encoder_class(D, H, num_layers=2).double().eval(), batch[0].double(), batch[1]
    sentences, words = torch.export.Dim("sentences", max=64), torch.export.Dim("words", max=512)
    shapes = {"x": {0: sentences, 1: words}, "lengths": {0: sentences}}
    program = torch.export.export(encoder, (x, lengths), dynamic_shapes=shapes, strict=False).module()
    compiled = torch.compile(encoder, dynamic=True, fullgraph=True, backend="aot_eager")
    x, lengths = torch.randn(3, 9, D, dtype=torch.float64), lengths[1:]
    for run in (program, compiled):
        for ours, theirs in zip(run(x, lengths), encoder(x, lengths), strict=True):
            assert_same(ours, theirs, atol=1e-12)  # float64


@pytest.mark.parametrize("name", CASES)
def test_the_meta_device_gives_shapes_and_memory_from_it_is_filled_by_reset_parameters(name):
    encoder = CASES[name](D, H, device="meta")
    lengths = torch.empty(2, dtype=torch.long, device="meta")
    mask = torch.empty(2, 3, dtype=torch.bool, device="meta")
    for padding in ({"lengths": lengths}, {"mask": mask}, {"lengths": [3, 2]}):
        words, sentence = encoder(torch.randn(2, 3, D, device="meta"), **padding)
        assert words.is_meta
    assert words.shape == (2, 3, encoder.output_size)
    assert sentence.shape == (2, encoder.output_size)
    encoder.to_empty(device="cpu")
    for parameter in encoder.parameters():
        torch.nn.init.constant_(parameter, torch.nan)
    torch.manual_seed(0)
    for module in encoder.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    torch.manual_seed(0)
    for ours, theirs in zip(encoder.parameters(), CASES[name](D, H).parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_sizes_below_one_are_refused():
    for build in ENCODERS.values():
        with pytest.raises(ValueError, match="input_size must be at least 1, got 0"):
            build(0, H)
        with pytest.raises(ValueError, match="hidden_size must be at least 1, got 0"):
            build(D, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": [[0.0] * 5]}, "x must be a tensor of floating-point numbers, got list"),
        ({"x": torch.zeros(2, 3, 5).long()}, "x must be a tensor of floating-point numbers, got torch.int64"),
        ({"x": torch.zeros(5)}, r"x must have shape \(B, N, 5\) or \(N, 5\), got \(5,\)"),
        ({"x": torch.zeros(2, 3, 4)}, r"input_size = 5 in its last dimension, got shape \(2, 3, 4\)"),
        ({"x": torch.zeros(2, 0, 5)}, r"at least one word, got x of shape \(2, 0, 5\)"),
        ({"lengths": torch.tensor([3])}, r"lengths must have shape \(2,\), one for each sentence of x, got \(1,\)"),
        ({"x": torch.zeros(3, D), "lengths": [3, 3]}, r"lengths must have shape \(1,\), .* got \(2,\)"),
        ({"lengths": torch.tensor([3, 0])}, "sequence 1 has length 0; every sequence needs at least one word"),
        ({"lengths": torch.tensor([4, 1])}, "sequence 0 has length 4, x has only 3 positions"),
        ({"lengths": torch.tensor([1.0, 1.0])}, "lengths must be integers, got torch.float32"),
        ({"mask": torch.ones(2, 4, dtype=torch.bool)}, r"mask has shape \(2, 4\), input has shape \(2, 3, 5\)"),
        ({"x": torch.zeros(3, D), "mask": torch.ones(1, 3, dtype=torch.bool)}, r"mask has shape \(1, 3\), .* \(3,\)"),
        ({"mask": torch.ones(2, 3)}, "mask must be boolean, True at a word, got torch.float32"),
        ({"mask": torch.tensor([[True] * 3, [False, True, True]])}, "True for the first words .* row 1 is not"),
        ({"mask": torch.tensor([[True] * 3, [False] * 3])}, "sequence 1 has length 0"),
        ({"lengths": [3, 3], "mask": torch.ones(2, 3, dtype=torch.bool)}, "give lengths or mask, not both"),
    ],
)
def test_bad_input_says_what_was_expected_and_what_came(arguments, message):
    for build in ENCODERS.values():
        with pytest.raises(ValueError, match=message):
            build(D, H)(**{"x": torch.zeros(2, 3, D), **arguments})


def test_lengths_beside_a_packed_sequence_are_refused(encoder, batch):
    x, lengths = batch
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    with pytest.raises(ValueError, match="a PackedSequence carries its own lengths"):
        encoder(packed, lengths)


def test_lengths_on_the_cpu_are_refused_while_a_graph_is_captured(monkeypatch):
    """Older versions of PyTorch would copy them again at every replay, from memory that is somebody else's by then."""
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    x = SimpleNamespace(shape=(2, 3, D), is_cuda=True, device=torch.device("cuda", 0))
    with pytest.raises(RuntimeError, match="while a CUDA graph is captured lengths must be on cuda:0, got cpu"):
        check_lengths(torch.tensor([3, 1]), x)
    with pytest.raises(ValueError, match="sequence 1 has length 4, x has only 3 positions"):
        check_lengths(torch.tensor([3, 4]), x)
    assert check_lengths(torch.tensor([3, 3]), x), "nothing is padded, so nothing is copied"


def test_code_that_is_compiled_does_not_ask_whether_a_graph_is_captured(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: pytest.fail("compilers cannot follow it"))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert not check_lengths(torch.tensor([3, 3]), SimpleNamespace(shape=(2, 3), device="cuda:0", is_cuda=True))
