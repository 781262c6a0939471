import numpy as np
import pytest
import torch

from sentence_state.data.batching import collate
from sentence_state.data.case import case_id
from sentence_state.data.example import Example
from sentence_state.data.indexing import Vocabularies
from sentence_state.data.vocabulary import PAD_ID, UNKNOWN_ID, Vocabulary
from sentence_state.models.embedding import WordEmbedding

from .synthetic import small

EXAMPLES = [Example(["the", "Cat", "sat", "on", "the", "mat"]), Example(["the", "Cat"])]


def vocabularies(case=False) -> Vocabularies:
    sentences = [example.words for example in EXAMPLES]
    return Vocabularies(Vocabulary.of_words(sentences), Vocabulary.of_characters(sentences), case=case)


def embedding_of(**fields) -> WordEmbedding:
    torch.manual_seed(0)
    return WordEmbedding(small(**fields), vocabularies(case="case_size" in fields)).eval()


def test_given_vectors_are_the_words():
    vectors = np.random.default_rng(0).standard_normal((len(vocabularies().words), 10)).astype(np.float32)
    embedding = WordEmbedding(small(), vocabularies(), vectors).eval()
    batch = collate(EXAMPLES, vocabularies())
    expected = torch.from_numpy(vectors)[batch.word_ids]
    expected[batch.word_ids == PAD_ID] = 0
    assert torch.equal(embedding(batch), expected)
    with pytest.raises(ValueError, match=r"vectors must have shape \(9, 10\), got \(9, 7\)"):
        WordEmbedding(small(), vocabularies(), vectors[:, :7])


@pytest.mark.parametrize("characters", ["BiLSTM", "CNN"])
def test_characters_are_read_word_by_word_with_the_case_beside_them(characters):
    embedding = embedding_of(characters=characters, case_size=3)
    found = embedding(collate(EXAMPLES, vocabularies(case=True)))  # (B, N, D)
    features = embedding.characters
    for row, example in enumerate(EXAMPLES):
        for position, word in enumerate(example.words, start=1):
            ids = torch.tensor([vocabularies().characters.ids(word)])
            spelled = features.encoder(features.vectors(ids)).sentence[0]
            expected = [embedding.words.weight[vocabularies().words.id(word)], spelled]
            expected.append(embedding.case.weight[case_id(word)])
            torch.testing.assert_close(found[row, position], torch.cat(expected))
    assert found.shape[-1] == embedding.output_size == 10 + (100 if characters == "BiLSTM" else 50) + 3


def test_a_word_is_spelled_once_however_often_it_occurs(monkeypatch):
    embedding = embedding_of(characters="CNN")
    sizes = []
    spell = embedding.characters.spell
    monkeypatch.setattr(embedding.characters, "spell", lambda words: sizes.append(len(words)) or spell(words))
    embedding(collate(EXAMPLES * 3, vocabularies()))
    assert sizes == [5 + 3]  # the Cat sat on mat, <s>, </s> and padding


def test_word_dropout_makes_unknown_words_in_training_only_and_spares_the_boundaries():
    embedding = embedding_of(word_dropout=0.5, dropout=0.0)
    ids = collate(EXAMPLES * 50, vocabularies()).word_ids
    assert torch.equal(embedding.drop_words(ids), ids)
    embedding.train()
    dropped = embedding.drop_words(ids)
    changed = dropped != ids
    assert set(dropped[changed].tolist()) == {UNKNOWN_ID}
    assert ids[changed].min() > 3
    assert 0.4 < changed[ids > 3].float().mean() < 0.6


def test_frozen_words_do_not_learn_and_padding_never_does():
    for freeze in (True, False):
        embedding = embedding_of(freeze_words=freeze, characters="CNN")
        embedding(collate(EXAMPLES, vocabularies())).square().sum().backward()
        assert (embedding.words.weight.grad is None) == freeze
        assert embedding.characters.vectors.weight.grad is not None
    assert not embedding.words.weight.grad[PAD_ID].any()
    assert not embedding.words.weight[PAD_ID].any()


def test_a_batch_without_the_features_is_refused():
    embedding = embedding_of(case_size=3)
    with pytest.raises(ValueError, match=r"the model reads batch\.case_ids, got None"):
        embedding(collate(EXAMPLES, vocabularies()))
