"""python -m benchmarks inference: from raw text to spans on a CPU, every way to run a tagger, beside flair."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from sentence_state import ModelConfig, SequenceTagger, TrainingConfig, fit
from sentence_state.data import Example, Splits, Tokenizer, read_benchmark, tags_to_spans
from sentence_state.data.word_vectors import read_word_vectors
from sentence_state.runtime import RuntimeModel
from sentence_state.serving.export.folder import export_onnx
from sentence_state.serving.export.program import ProgramSession, export_torch, wrap

from .measure import append, check_repeats, circumstances, ratio

WORDS, BATCH = 24, 32
EAGER = "S-LSTM, PyTorch float32"
Seconds = Callable[[Sequence[str]], float]


def main(
    data: Path,
    vectors: Path,
    work: Path,
    flair: Path | None = None,
    run: Path | None = None,
    sentences: int = 2000,
    epochs: int = 1,
    repeats: int = 100,
    threads: int = 2,
    save: bool = True,
) -> None:
    """Latency and words a second of taggers of size 300 on CoNLL-2003. Appends to benchmarks/results/inference.jsonl.

    Args:
        data: folder with CoNLL-2003.
        vectors: GloVe's vectors as text; all taggers get the same.
        work: an empty folder for the trained taggers, or one where they are already.
        flair: the Python of an environment with flair.
        run: folder of a tagger that `sentence-state train tagger` made: in int8 it is one more way.
        sentences: to train on: the speed does not depend on how good a tagger is.
        epochs: of training. All 14,041 sentences and ten epochs give taggers whose test scores mean something.
        repeats: calls of each way with one sentence, two at least; a tenth of them with a batch.
        threads: of every way.
        save: append the rows to the results.
    """
    check_repeats(repeats)
    torch.set_num_threads(threads)
    splits = read_benchmark("conll2003", data, target_scheme="bioes").splits
    prepare(splits, vectors, work, flair, sentences, epochs)
    texts = [" ".join(e.words) for e in (*splits.test, *splits.dev, *splits.train) if len(e.words) == WORDS]
    random.Random(0).shuffle(texts)
    ways, versions = open_ways(work, flair, threads)
    if run is not None:
        tagger = SequenceTagger.from_pretrained(run)
        size = f"{tagger.config.encoder}, H = {tagger.config.hidden_size}, {tagger.config.num_steps} steps"
        export_onnx(tagger, work / "run-int8", splits.dev[:200], "int8")
        ways[f"{size}, ONNX int8"] = timed(RuntimeModel.from_pretrained(work / "run-int8", threads).predict)
    rows = []
    for batch, calls in ((1, repeats), (BATCH, max(10, repeats // 10))):
        batches = [[texts[(call * batch + i) % len(texts)] for i in range(batch)] for call in range(calls + 3)]
        rows += measure(ways, batches, batch, versions)
    show(rows)
    if save:
        print(f"appended to {append('inference', rows)}")


# ---- taggers ----------------------------------------------------------------------------------------


def prepare(splits: Splits, vectors: Path, work: Path, flair: Path | None, sentences: int, epochs: int) -> None:
    """Train and export each tagger on the same sentences with the same vectors, unless all are there."""
    finished = [work / run / "result.json" for run in ("S-LSTM", "BiLSTM")]
    finished += [work / "S-LSTM" / kind / "export.json" for kind in ("onnx", "onnx-int8", "torch")]
    finished += [work / "BiLSTM" / "onnx" / "export.json"]
    finished += [work / "flair" / "final-model.pt"] if flair is not None else []
    if all(path.exists() for path in finished):
        return
    few = Splits(splits.train[:sentences], splits.dev[: max(200, sentences // 4)], splits.test)
    work.mkdir(parents=True, exist_ok=True)
    vocabulary, embeddings = read_word_vectors(vectors, splits)
    for encoder in ("S-LSTM", "BiLSTM"):
        config = ModelConfig(encoder=encoder, hidden_size=300, freeze_words=True)
        tagger = SequenceTagger.from_examples(
            few.train, config, words=vocabulary, vectors=embeddings.vectors, tokenizer=Tokenizer(whitespace=True)
        )
        fit(tagger, few, TrainingConfig(epochs=epochs, batch_size=10, device="cpu"), work / encoder)
        print(encoder, export_onnx(tagger, work / encoder / "onnx", few.dev))
        if encoder == "S-LSTM":
            print("int8", export_onnx(tagger, work / encoder / "onnx-int8", few.dev, "int8"))
            print("torch", export_torch(tagger, work / encoder / "torch", few.dev))
    if flair is not None:
        (work / "words.json").write_text(json.dumps(vocabulary.words), encoding="utf-8")
        np.save(work / "vectors.npy", embeddings.vectors.astype(np.float32))
        for name, examples in (("train", few.train), ("dev", few.dev), ("test", few.test)):
            (work / f"{name}.json").write_text(json.dumps([describe(example) for example in examples]))
        subprocess.run([flair, Path(__file__).with_name("flair_tagger.py"), "train", work, str(epochs)], check=True)


def describe(example: Example) -> dict[str, Any]:
    return {"words": example.words, "spans": tags_to_spans(example.tags or [], "bioes")}


def open_ways(work: Path, flair: Path | None, threads: int) -> tuple[dict[str, Seconds], dict[str, str]]:
    """Every way to run a tagger: a batch of texts -> the seconds until its spans are there."""
    import onnxruntime  # here: the other benchmarks need none

    slstm, bilstm = work / "S-LSTM", work / "BiLSTM"
    eager = SequenceTagger.from_pretrained(slstm)
    program = torch.export.load(slstm / "torch" / "model.pt2").module()
    predicts = {
        EAGER: eager.predict,
        "S-LSTM, PyTorch bfloat16": SequenceTagger.from_pretrained(slstm, precision="bfloat16").predict,
        "S-LSTM, PyTorch int8": SequenceTagger.from_pretrained(slstm, precision="int8").predict,
        "S-LSTM, torch.export": wrap(eager, ProgramSession(program)).predict,
        "S-LSTM, ONNX float32": RuntimeModel.from_pretrained(slstm / "onnx", threads).predict,
        "S-LSTM, ONNX int8": RuntimeModel.from_pretrained(slstm / "onnx-int8", threads).predict,
        "BiLSTM, PyTorch float32": SequenceTagger.from_pretrained(bilstm).predict,
        "BiLSTM, ONNX float32": RuntimeModel.from_pretrained(bilstm / "onnx", threads).predict,
    }
    ways: dict[str, Seconds] = {name: timed(predict) for name, predict in predicts.items()}
    versions = {"onnxruntime": onnxruntime.__version__}
    if flair is not None:
        ways["flair, BiLSTM-CRF"], flair_versions = flair_process(work, flair, threads)
        versions["flair"] = flair_versions["flair"]
    return ways, versions


def timed(predict: Callable[[Sequence[str]], Any]) -> Seconds:
    def seconds(texts: Sequence[str]) -> float:
        start = time.perf_counter()
        predict(texts)
        return time.perf_counter() - start

    return seconds


def flair_process(work: Path, flair: Path, threads: int) -> tuple[Seconds, dict[str, str]]:
    """flair in its own environment, taking its own time, so that the pipe between us does not count."""
    command = [flair, Path(__file__).with_name("flair_tagger.py"), "serve", work, str(threads)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, "PYTHONPATH": ""})

    def seconds(texts: Sequence[str]) -> float:
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018
        process.stdin.write(json.dumps(texts) + "\n")
        process.stdin.flush()
        return float(json.loads(process.stdout.readline())["seconds"])

    assert process.stdout is not None
    line = process.stdout.readline()
    while not line.startswith("{"):  # its log
        line = process.stdout.readline()
    return seconds, json.loads(line)


# ---- measuring --------------------------------------------------------------------------------------


def measure(
    ways: dict[str, Seconds], batches: Sequence[Sequence[str]], batch: int, versions: dict[str, str]
) -> list[dict[str, Any]]:
    """Call by call, each way once on the same texts; the first three calls warm up."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for texts in batches:
        for name, way in ways.items():
            times[name].append(way(texts))
    times = {name: seconds[3:] for name, seconds in times.items()}
    return [
        {
            "benchmark": "inference",
            **circumstances("cpu"),
            **versions,
            "way": name,
            "batch": batch,
            "words": WORDS,
            "calls": len(seconds),
            "p50_ms": statistics.median(seconds) * 1e3,
            "p99_ms": statistics.quantiles(seconds, n=100)[98] * 1e3,
            "words_per_second": batch * WORDS / statistics.median(seconds),
            "eager S-LSTM / this": ratio(times[EAGER], seconds),
        }
        for name, seconds in times.items()
    ]


def show(rows: Sequence[dict[str, Any]]) -> None:
    table = Table(
        title=f"raw text to spans, H = 300, 9 steps where not said, {rows[0]['device']}, {rows[0]['threads']} threads"
    )
    for column in ("", "batch x words", "p50 ms", "p99 ms", "words/s", "eager S-LSTM / this"):
        table.add_column(column, justify="right" if column else "left")
    for row in rows:
        numbers = [f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}", f"{row['words_per_second']:,.0f}"]
        ratio = f"{row['eager S-LSTM / this']:.2f}"
        table.add_row(row["way"], f"{row['batch']} x {row['words']}", *numbers, ratio)
    Console(width=140).print(table)
