"""Word vectors of a file for the words of the splits."""

from __future__ import annotations

import os
from pathlib import Path

from .embeddings import Embeddings, read_embeddings
from .example import Splits
from .vocabulary import Vocabulary


def read_word_vectors(path: Path, splits: Splits) -> tuple[Vocabulary, Embeddings]:
    """A vocabulary, and the vectors for its words.

    The words are those of train, and those of dev and test that have a vector: one that was not trained on and has
    none is <unk>, as it will be in any new text.
    """
    everything = (*splits.train, *splits.dev, *splits.test)
    words = Vocabulary.of_words(example.words for example in everything)
    embeddings = read_embeddings(path, words, cache_folder())
    trained = {word for example in splits.train for word in example.words}
    special = len(words.specials)
    kept = [i for i, word in enumerate(words.words) if i < special or embeddings.found[i] or word in trained]
    vocabulary = Vocabulary([words.words[i] for i in kept[special:]], [words.counts[i] for i in kept[special:]])
    return vocabulary, Embeddings(embeddings.vectors[kept], embeddings.found[kept], embeddings.description)


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/sentence-state, by default in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sentence-state"
