"""sentence-state demo: intents and slots of the embedded sample by one S-LSTM, beside a BiLSTM trained the same way."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..data import Example, Splits, read_sample
from ..models import JointModel, ModelConfig
from ..training import Evaluation, TrainingConfig, fit
from ..training.evaluation import evaluate_labels, evaluate_tags
from ..training.run_folder import refuse_other_run
from .console import TrainingDisplay, coloured, colours_of, make_console, percent, program
from .flags import Demo

SCHEME = "bioes"
SHOWN = 6  # predictions

# chosen on dev for the S-LSTM; the BiLSTM gets the same
MODEL = ModelConfig(
    hidden_size=160,
    num_steps=3,
    gates="sharp",
    word_size=160,
    characters="CNN",
    dropout=0.3,
    word_dropout=0.1,
    output_dropout=0.3,
    transitions="static",
)
TRAINING = TrainingConfig(
    epochs=14, patience=0, batch_size=32, learning_rate=0.004, decay=0.91, l2=0.0, lazy_words=True, device="cpu"
)


@dataclass
class Row:
    """One line of the table."""

    name: str
    test: Evaluation
    parameters: int | None = None
    seconds: float | None = None


def demo(flags: Demo) -> int:
    console = make_console()
    if flags.out is not None:
        refuse_other_run(flags.out)
    splits = read_sample(SCHEME)
    console.print(introduction(splits))
    rows = [Row("most frequent", most_frequent(splits))]
    models: dict[str, JointModel] = {}
    for encoder in ("BiLSTM", "S-LSTM"):
        trained = train(encoder, splits, flags, console)
        if trained is None:
            console.print("Stopped.")
            return 130
        models[encoder], row = trained
        rows.append(row)
    console.print(results(rows))
    console.print("most frequent: the intent that is most frequent in train, for each word the tag it has most often.")
    console.print("Both encoders: the same size, epochs, learning rate, dropout and seed (another: --seed 1).")
    console.print("These settings were chosen on dev for the S-LSTM alone: the BiLSTM with its own may do better.\n")
    show_predictions(models["S-LSTM"], splits.test, console)
    console.print("\nNext, with a file of your own:", style="bold")
    console.print(f"  {program()} train classifier --train reviews.csv --out runs/reviews")
    if flags.out is not None:
        console.print(f'  {program()} predict {flags.out} "wake me at seven and play some jazz"')
    return 0


def introduction(splits: Splits) -> str:
    intents = len({example.label for example in splits.train})
    slots = len({tag[2:] for example in splits.train for tag in example.tags or () if tag != "O"})
    sizes = f"{len(splits.train):,} to learn from, {len(splits.dev)} to choose by, {len(splits.test)} to test on"
    task = f"One of {intents} intents for each utterance, {slots} kinds of slots in it, both in one pass"
    return f"The embedded sample: utterances to an assistant, {sizes}.\n{task}.\n"


def train(encoder: str, splits: Splits, flags: Demo, console: Console) -> tuple[JointModel, Row] | None:
    """A joint model with this encoder and its row of the table; None after Ctrl-C."""
    start = time.monotonic()
    model = JointModel.from_examples(splits.train, replace(MODEL, encoder=encoder), seed=flags.seed)
    out = flags.out if encoder == "S-LSTM" else None
    with TrainingDisplay(console, f"{encoder}  ") as display:
        result = fit(model, splits, replace(TRAINING, seed=flags.seed), out, progress=display)
    if not result.finished or result.test is None:
        return None
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return model, Row(encoder, result.test, parameters, time.monotonic() - start)


def most_frequent(splits: Splits) -> Evaluation:
    """What the training data alone give: no model."""
    intent = Counter(example.label for example in splits.train).most_common(1)[0][0]
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    for example in splits.train:
        for word, tag in zip(example.words, example.tags or (), strict=True):
            tags[word][tag] += 1
    found = [[tags[word].most_common(1)[0][0] if word in tags else "O" for word in e.words] for e in splits.test]
    labels = evaluate_labels([str(example.label) for example in splits.test], [str(intent)] * len(splits.test))
    spans = evaluate_tags([example.tags or [] for example in splits.test], found, SCHEME)
    return Evaluation("mean", {**spans.scores, **labels.scores, "mean": (labels.score + spans.score) / 2})


def results(rows: Sequence[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="test", title_style="bold")
    for name in ("", "intent accuracy", "slot F1", "parameters", "seconds"):
        table.add_column(name, justify="right" if name else "left")
    for row in rows:
        parameters = f"{row.parameters:,}" if row.parameters else ""
        seconds = f"{row.seconds:.0f}" if row.seconds else ""
        scores = row.test.scores
        table.add_row(row.name, percent(scores["accuracy"]), percent(scores["f1"]), parameters, seconds)
    return table


def show_predictions(model: JointModel, examples: Sequence[Example], console: Console) -> None:
    """The first test utterances of as many intents, right or wrong."""
    firsts = list({example.label: example for example in reversed(examples)}.values())[::-1][:SHOWN]
    colours = colours_of([tag[2:] for tag in (model.vocabularies.tags.words if model.vocabularies.tags else [])])
    console.print("S-LSTM on test utterances, with the score of the intent:", style="bold")
    found = model.decode_all(firsts)
    answers = model.predict([example.words for example in firsts])
    for example, answer, tags in zip(firsts, answers, found.tags or (), strict=True):
        line = coloured(example.located()[0], answer, console, colours)
        mistakes = [f"is {example.label}"] * (answer["label"] != example.label)
        mistakes += ["slots differ"] * (tags != example.tags)
        if mistakes:
            line.append(f"   (wrong: {', '.join(mistakes)})", style="red")
        console.print(Text("  ").append(line))
