"""flair's SequenceTagger for `python -m benchmarks inference`; run by the Python of an environment that has flair.

python benchmarks/flair_tagger.py train WORK N   BiLSTM-CRF with the vectors and sentences that WORK holds, N epochs
python benchmarks/flair_tagger.py serve WORK N   with N threads: reads batches as JSON lines, writes the seconds of each
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import flair
import numpy as np
import torch
from flair.data import Corpus, Dictionary, Sentence
from flair.datasets import FlairDatapointDataset
from flair.embeddings import WordEmbeddings
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer

HIDDEN = 300


def sentences(path: Path) -> list[Sentence]:
    found = []
    for example in json.loads(path.read_text(encoding="utf-8")):
        sentence = Sentence(example["words"])
        for start, end, label in example["spans"]:
            sentence[start:end].add_label("ner", label)
        found.append(sentence)
    return found


def train(work: Path, epochs: int) -> None:
    flair.set_seed(0)
    words = json.loads((work / "words.json").read_text(encoding="utf-8"))
    vectors = np.load(work / "vectors.npy")
    embeddings = WordEmbeddings(
        None, vocab={word: row for row, word in enumerate(words)}, embedding_length=vectors.shape[1], name="vectors"
    )
    embeddings.embedding.weight.data[: len(words)] = torch.from_numpy(vectors)
    corpus = Corpus(
        FlairDatapointDataset(sentences(work / "train.json")),
        FlairDatapointDataset(sentences(work / "dev.json")),
        FlairDatapointDataset(sentences(work / "test.json")),
        sample_missing_splits=False,
    )
    labels: Dictionary = corpus.make_label_dictionary("ner", add_unk=False)
    tagger = SequenceTagger(
        embeddings=embeddings,
        tag_dictionary=labels,
        tag_type="ner",
        hidden_size=HIDDEN,
        rnn_layers=1,
        use_rnn=True,
        use_crf=True,
        reproject_embeddings=False,
    )
    trainer = ModelTrainer(tagger, corpus)
    trainer.train(work / "flair", learning_rate=0.1, mini_batch_size=32, max_epochs=epochs, train_with_dev=False)


def serve(work: Path, threads: int) -> None:
    torch.set_num_threads(threads)
    tagger = SequenceTagger.load(work / "flair" / "final-model.pt")
    tagger.eval()
    print(json.dumps({"flair": flair.__version__, "torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        texts = json.loads(line)
        start = time.perf_counter()
        read = [Sentence(text, use_tokenizer=False) for text in texts]
        tagger.predict(read, mini_batch_size=len(texts))
        spans = [[(s.start_position, s.end_position, s.tag, s.score) for s in one.get_spans("ner")] for one in read]
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "spans": sum(map(len, spans))}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        serve(Path(sys.argv[2]), int(sys.argv[3]))
