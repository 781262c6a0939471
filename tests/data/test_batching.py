"""From examples to padded tensors, in an order that can be saved and taken up again."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sentence_state.data.batching import Batches, collate, widen
from sentence_state.data.case import CASES
from sentence_state.data.errors import DataError
from sentence_state.data.example import Example
from sentence_state.data.indexing import LONGEST_WORD, Vocabularies, index_examples
from sentence_state.data.vocabulary import PAD_ID, Vocabulary

EXAMPLES = [
    Example(["Ann", "met", "Bob"], "pos", ["B", "O", "B"]),
    Example(["Bob", "ran"], "neg", ["B", "O"]),
    Example(["met"], "pos", ["O"]),
]
WORDS = Vocabulary(["Ann", "met", "Bob"])  # ids 4, 5, 6
VOCABULARIES = Vocabularies(
    words=WORDS,
    characters=Vocabulary(list("AnmetBob")),
    labels=Vocabulary.of_labels(["pos", "neg"]),
    tags=Vocabulary.of_labels("BO"),
    case=True,
)


def random_examples(count, seed=0):
    lengths = np.random.default_rng(seed).integers(1, 30, count)
    return [Example([f"w{i}"] * length) for i, length in enumerate(lengths)]


def indexed(count):
    examples = random_examples(count)
    return index_examples(examples, Vocabularies(Vocabulary.of_words(example.words for example in examples)))


def same(left, right):
    return torch.equal(left.word_ids, right.word_ids) and torch.equal(left.positions, right.positions)


def test_words_are_padded_between_their_boundaries():
    batch = collate(EXAMPLES, VOCABULARIES)
    assert batch.word_ids.tolist() == [[2, 4, 5, 6, 3], [2, 6, 1, 3, 0], [2, 5, 3, 0, 0]]
    assert batch.lengths.tolist() == [5, 4, 3]
    assert batch.tag_ids.tolist() == [[-100, 0, 1, 0, -100], [-100, 0, 1, -100, -100], [-100, 1, -100, -100, -100]]
    assert batch.label_ids.tolist() == [1, 0, 1]
    assert {batch.word_ids.dtype, batch.lengths.dtype, batch.label_ids.dtype} == {torch.int64}


def test_boundaries_and_targets_can_be_left_out():
    batch = collate(EXAMPLES, VOCABULARIES, boundaries=False, targets=False)
    assert batch.word_ids.tolist() == [[4, 5, 6], [6, 1, 0], [5, 0, 0]]
    assert batch.lengths.tolist() == [3, 2, 1]
    assert batch.label_ids is batch.tag_ids is None


def test_characters_spell_every_word():
    batch = collate(EXAMPLES, VOCABULARIES)
    characters = VOCABULARIES.characters
    expected = torch.zeros(3, 5, 3, dtype=torch.int64)
    for row, example in enumerate(EXAMPLES):
        for position, word in enumerate(example.words, start=1):
            expected[row, position, : len(word)] = torch.tensor(characters.ids(word))
        expected[row, 0, 0], expected[row, len(example.words) + 1, 0] = 2, 3
    assert torch.equal(batch.character_ids, expected)


def test_a_very_long_word_is_cut_for_characters_only():
    words = Vocabulary(["a" * 500])
    batch = collate([Example(["a" * 500])], Vocabularies(words, Vocabulary(["a"])))
    assert batch.word_ids.tolist() == [[2, 4, 3]]
    assert batch.character_ids.shape == (1, 3, LONGEST_WORD)


def test_case_is_a_feature():
    cases = collate(EXAMPLES, VOCABULARIES).case_ids[1]
    assert [CASES[i] for i in cases] == ["other", "Title", "lower", "other", "<pad>"]


def test_a_batch_can_be_widened():
    batch = collate(EXAMPLES, VOCABULARIES)
    wide = widen(batch, 8, 9)
    assert wide.word_ids.shape == wide.tag_ids.shape == wide.case_ids.shape == (3, 8)
    assert wide.character_ids.shape == (3, 8, 9)
    assert torch.equal(wide.word_ids[:, :5], batch.word_ids)
    assert (wide.word_ids[:, 5:] == PAD_ID).all()
    assert torch.equal(wide.lengths, batch.lengths)


def test_a_batch_moves_to_a_device_as_a_whole():
    batch = collate(EXAMPLES, VOCABULARIES).to("meta")
    tensors = [batch.word_ids, batch.lengths, batch.character_ids, batch.case_ids, batch.label_ids, batch.tag_ids]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert batch.positions.tolist() == [0, 1, 2]
    assert len(batch) == 3


def test_every_epoch_holds_every_sentence_once_and_batches_of_constant_size():
    batches = Batches(indexed(103), 10)
    for _ in range(2):
        epoch = list(batches)
        assert sorted(p for batch in epoch for p in batch.positions.tolist()) == list(range(103))
        assert sorted(map(len, epoch)) == [3] + [10] * 10
        assert len(epoch) == len(batches) == 11


def test_sentences_of_similar_length_come_together():
    examples = indexed(2000)
    batches = list(Batches(examples, 10))
    positions = sum(batch.word_ids.numel() for batch in batches)
    assert positions < 1.1 * examples.starts[-1]
    lengths = [int(batch.lengths.max()) for batch in batches]
    assert lengths != sorted(lengths)


def test_the_order_depends_on_seed_and_epoch_only():
    examples = indexed(60)
    first, again, other = Batches(examples, 4, seed=1), Batches(examples, 4, seed=1), Batches(examples, 4, seed=2)
    one, two = list(first), list(first)
    assert all(map(same, one, again))
    assert not all(map(same, one, two))
    assert not all(map(same, one, other))


@given(st.integers(0, 39))
def test_batches_go_on_exactly_where_they_were_saved(steps):
    def stream(batches):
        while True:
            yield from batches

    whole = stream(Batches(indexed(60), 4))
    before = Batches(indexed(60), 4)
    for _ in range(steps):
        next(whole)
    run = stream(before)
    for _ in range(steps):
        next(run)
    after = Batches(indexed(60), 4)
    after.restore(before.state())
    rest = stream(after)
    assert all(same(next(whole), next(rest)) for _ in range(20))


def test_evaluation_reads_the_sentences_by_length():
    batches = list(Batches(indexed(50), 8, shuffle=False))
    lengths = [length for batch in batches for length in batch.lengths.tolist()]
    assert lengths == sorted(lengths)
    assert sorted(p for batch in batches for p in batch.positions.tolist()) == list(range(50))


def test_bad_examples_are_refused_with_file_and_line():
    place = {"path": "dev.conll", "lines": range(5, 7)}
    bad = {
        "dev.conll:5: a sentence without a word": Example([], **place),
        "dev.conll:5: label 'NEU' is none of neg, pos": Example(["a"], "NEU", ["O"], **place),
        "dev.conll:5: 2 words, but 1 tags": Example(["a", "b"], "pos", ["O"], **place),
        "dev.conll:6: tag 'X' is none of B, O": Example(["a", "b"], "pos", ["O", "X"], **place),
    }
    for message, example in bad.items():
        with pytest.raises(DataError) as error:
            collate([example], VOCABULARIES)
        assert str(error.value) == message
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        Batches(indexed(3), 0)
