"""The flags of every command as dataclasses; nothing here needs torch, so that --help answers at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg, subcommand

from ..serving.limits import Limits

# an empty hint keeps "(default: None)" and "(default: False)" out of --help
Name = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
File = Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")]
Folder = Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")]
Number = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
Real = Annotated[float | None, arg(metavar="X", help_behavior_hint="")]
Column = Annotated[str | None, arg(metavar="COLUMN", help_behavior_hint="")]
Character = Annotated[str | None, arg(metavar="CHARACTER", help_behavior_hint="")]
Switch = Annotated[bool, arg(help_behavior_hint="")]
Gates = Annotated[Literal["paper", "sharp"] | None, arg(help_behavior_hint="")]
Characters = Annotated[Literal["none", "BiLSTM", "CNN"] | None, arg(help_behavior_hint="")]
Readout = Annotated[Literal["sentence", "attention", "max", "steps"] | None, arg(help_behavior_hint="")]
OnNan = Annotated[Literal["stop", "skip"] | None, arg(help_behavior_hint="")]
Precision = Annotated[Literal["float32", "bfloat16"] | None, arg(help_behavior_hint="")]
Quantize = Annotated[Literal["int8"] | None, arg(help_behavior_hint="")]
Run = Positional[Annotated[Path, arg(metavar="RUN")]]


class UsageError(ValueError):
    """Flags that are wrong, or wrong together; the message is for the user."""


@dataclass(frozen=True)
class Sources:
    """Where the examples come from: your files, or a set by its name."""

    train: File = None
    """Examples to learn from."""
    dev: File = None
    """Examples to choose the best epoch by; split off --train when not given."""
    test: File = None
    """Examples to measure the finished model on."""
    stream: Switch = False
    """Read --train in blocks as training goes on, for files larger than memory. It may be a folder, or a pattern such
    as "parts/*.jsonl"."""
    data: Name = None
    """Instead of files: sample (embedded), mr, fdu/<domain>, conll2003, ptb, ewt, gum, or hub:<name> (downloads)."""
    data_dir: Folder = None
    """Where the set of --data is."""
    dev_fraction: Annotated[float, arg(metavar="X")] = 0.1
    """Share of --train that becomes dev."""
    embeddings: File = None
    """Word vectors: GloVe or word2vec as text, plain, .gz or .zip."""


@dataclass(frozen=True)
class TableFlags:
    """How a CSV, TSV or JSONL file is read; what is not given is found out and said."""

    text_column: Column = None
    """Name of the column, or its number from 1."""
    label_column: Column = None
    delimiter: Character = None
    header: Literal["auto", "yes", "no"] = "auto"
    """Whether the first row names the columns."""
    tokenized: Switch = False
    """The words of a text are separated by spaces already."""
    keep_contractions: Switch = False
    """Leave "don't" one word; by default it becomes "do n't", as in GloVe."""
    skip_empty: Switch = False
    """Leave out rows without text or label."""


@dataclass(frozen=True)
class ColumnFlags:
    """How a file with one word a line (CoNLL columns, CoNLL-U) is read."""

    word_column: Annotated[int, arg(metavar="N")] = 0
    """Counted from 0; -1 is the last."""
    tag_column: Column = None
    """Counted in the same way, the last by default; xpos or upos in CoNLL-U."""
    tag_scheme: Literal["auto", "iob1", "bio", "bioes", "bmes", "bilou", "plain"] = "auto"
    broken_tags: Literal["error", "repair"] = "error"
    """Tags that break their scheme: refuse them, or read them as conlleval does."""


@dataclass(frozen=True)
class Settings:
    """Model and training; what is not given is the preset's."""

    encoder: Name = None
    """S-LSTM, LSTM, BiLSTM, "2 stacked BiLSTM", CNN, "Transformer (N=6)", ..."""
    hidden_size: Number = None
    num_steps: Number = None
    """Of the S-LSTM."""
    gates: Gates = None
    characters: Characters = None
    """Features made of a word's characters."""
    word_size: Number = None
    """Length of the word vectors where --embeddings gives none."""
    freeze_words: Switch = False
    """Do not train the word vectors."""
    dropout: Real = None
    word_dropout: Real = None
    step_dropout: Real = None
    readout: Readout = None
    """What is classified: the sentence state, attended words, the state beside the words' maximum, attended steps."""
    epochs: Number = None
    """At most."""
    patience: Number = None
    """Epochs without a better dev score before training stops; 0: never."""
    batch_size: Number = None
    learning_rate: Real = None
    decay: Real = None
    """Factor on the learning rate after each epoch."""
    word_rate: Real = None
    """Factor on the learning rate of the word vectors."""
    l2: Real = None
    consistency: Real = None
    """Read each batch twice, with other dropout, and weigh how far the answers differ; 0: once."""
    micro_batches: Number = None
    """Pieces in which a batch is computed: the same step in less memory."""
    shard: Switch = False
    """With many processes: each keeps a part of the weights (FSDP2)."""
    on_nan: OnNan = None
    """A loss that is no number: stop and save the batch (default), or skip the batch."""
    precision: Precision = None


@dataclass(frozen=True)
class TrainFlags:
    """What the three tasks share."""

    out: Annotated[Path, arg(metavar="DIR")]
    """The run folder to make."""
    preset: Literal["fast", "paper", "best"] = "fast"
    """fast: small, for a laptop; paper: Section 4.1; best: what dev chose on MR, for taggers on CoNLL-2003."""
    resume: Switch = False
    """Go on with the run in --out after Ctrl-C or a crash; give the other flags as before."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Of the weights, the order of the examples and the dev split."""
    device: Annotated[str, arg(metavar="NAME")] = "auto"
    """cpu, cuda, cuda:1, ...; auto: a GPU where there is one."""
    encoding: Name = None
    """Of the files; found out by default."""
    track: Switch = False
    """Also write for TensorBoard, into the run folder."""
    sources: Sources = field(default_factory=Sources)
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class Classifier(TrainFlags):
    """Train a classifier on texts with a label each: CSV, TSV or JSONL.

    sentence-state train classifier --train reviews.csv --out runs/reviews
    """

    table: TableFlags = field(default_factory=TableFlags)


@dataclass(frozen=True)
class Tagger(TrainFlags):
    """Train a tagger on words with a tag each: CoNLL columns or CoNLL-U.

    sentence-state train tagger --train train.conll --dev dev.conll --out runs/ner
    """

    columns: ColumnFlags = field(default_factory=ColumnFlags)


@dataclass(frozen=True)
class Joint(TrainFlags):
    """Train one model for a label and tags: lines such as play_music<TAB>play [jazz](genre).

    sentence-state train joint --data sample --out runs/assistant
    """


@dataclass(frozen=True)
class Train:
    """Train a model on your files."""

    task: (
        Annotated[Classifier, subcommand("classifier")]
        | Annotated[Tagger, subcommand("tagger")]
        | Annotated[Joint, subcommand("joint")]
    )


@dataclass(frozen=True)
class Evaluate:
    """Measure a trained model on a file with labels or tags.

    sentence-state evaluate runs/ner test.conll
    """

    run: Run
    """Folder of a trained model."""
    file: Positional[Annotated[Path, arg(metavar="FILE")]]
    """Written as the training file was."""
    json: Switch = False
    """Print JSON."""
    batch_size: Annotated[int, arg(metavar="N")] = 32
    device: Annotated[str, arg(metavar="NAME")] = "auto"
    encoding: Name = None
    table: TableFlags = field(default_factory=TableFlags)
    columns: ColumnFlags = field(default_factory=ColumnFlags)


@dataclass(frozen=True)
class Predict:
    """Label or tag texts: those given here, those of a file, or standard input line by line.

    sentence-state predict runs/reviews "a gorgeous , witty film"
    """

    run: Run
    """Folder of a trained model."""
    texts: Positional[Annotated[tuple[str, ...], arg(metavar="[TEXT ...]", help_behavior_hint="")]] = ()
    """Raw text: it is cut into words as in training."""
    input: File = None
    """A file like those of training; or a .csv, .tsv, .jsonl, .conll or .conllu file, or one text a line."""
    output: File = None
    """Where the answers go: a table if it ends in .csv or .tsv, else JSON lines."""
    json: Switch = False
    """Print JSON lines."""
    batch_size: Annotated[int, arg(metavar="N")] = 32
    device: Annotated[str, arg(metavar="NAME")] = "auto"
    encoding: Name = None
    text_column: Column = None
    delimiter: Character = None
    header: Literal["auto", "yes", "no"] = "auto"
    word_column: Number = None
    """Where not given, these are as in training."""


@dataclass(frozen=True)
class Export:
    """Write a trained model for use elsewhere, and compare its answers with the model's own.

    sentence-state export runs/ner --format onnx --quantize int8
    """

    run: Run
    """Folder of a trained model."""
    format: Literal["onnx", "torch"] = "onnx"
    """onnx: for sentence_state.runtime, onnxruntime and numpy alone; torch: a program for torch.export.load."""
    quantize: Quantize = None
    """Weights of the S-LSTM as 8-bit integers: a quarter of the bytes, faster, answers differ a little."""
    out: Folder = None
    """The folder to make; RUN/onnx, RUN/onnx-int8 or RUN/torch by default."""


@dataclass(frozen=True)
class Demo:
    """Train on the embedded sample in about a minute: intents and slots by one S-LSTM, beside a BiLSTM."""

    seed: Annotated[int, arg(metavar="N")] = 0
    out: Folder = None
    """Keep the trained model there."""


@dataclass(frozen=True)
class Serve:
    """Serve trained models over HTTP, with a page to look at them.

    sentence-state serve runs/reviews runs/ner --port 8000
    """

    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUN [RUN ...]", help_behavior_hint="")]]
    """Folders of trained models; the first answers where a request names none."""
    host: Annotated[str, arg(metavar="ADDRESS")] = "127.0.0.1"
    """0.0.0.0: reachable from other machines."""
    port: Annotated[int, arg(metavar="N")] = 8000
    """0: any that is free."""
    token_file: File = None
    """Ask clients for the bearer token in this file, or else in $SENTENCE_STATE_TOKEN."""
    threads: Number = None
    """Of PyTorch, for each model; by default the models share the cores."""
    device: Annotated[str, arg(metavar="NAME")] = "auto"
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Reproduce:
    """Run the experiments of the paper and put our numbers beside its own.

    sentence-state reproduce table4 --data-dir data --embeddings glove.txt --jobs 4
    """

    targets: Positional[Annotated[tuple[str, ...], arg(metavar="TARGET [TARGET ...]", help_behavior_hint="")]]
    """list, table1 ... table7, figure2 ... figure5, memory, all, vectors (those of the sets, as one small file), or a
    JSON file with rows of your own."""
    data_dir: Folder = None
    """Where the sets are; smoke runs do without."""
    embeddings: Annotated[tuple[Path, ...], arg(metavar="FILE", help_behavior_hint="")] = ()
    """Word vectors: GloVe as text, plain, .gz or .zip, or the .npz that `reproduce vectors` writes of one or more."""
    out: Folder = None
    """Results, finished runs and report; by default runs/reproduce, for smoke runs runs/smoke."""
    seeds: Annotated[int, arg(metavar="N")] = 5
    """Runs of every row, with the seeds 0 to N-1."""
    settings: Annotated[tuple[str, ...], arg(metavar="NAME")] = ("paper",)
    """Presets (paper, best, fast) or folders of tuned settings; a table has its rows once for each."""
    jobs: Annotated[int, arg(metavar="N")] = 1
    """Runs side by side, on one GPU or CPU; several GPUs share them."""
    device: Annotated[str, arg(metavar="NAME")] = "auto"
    smoke: Switch = False
    """Tiny models and slices of the data, minutes on a CPU: it shows that all works, not how well."""
    skip_times: Switch = False
    """Leave out what is measured alone after the training runs: times and memory."""
    report_only: Switch = False
    """Train nothing, write the report of what is finished."""


@dataclass(frozen=True)
class Tune:
    """Search the settings of each encoder on dev: the same space, the same number of trials.

    sentence-state tune mr --data-dir data --embeddings glove.txt --encoders S-LSTM BiLSTM --jobs 4
    """

    data: Positional[Annotated[tuple[str, ...], arg(metavar="SET [SET ...]", help_behavior_hint="")]]
    """mr, fdu/<domain>, conll2003, ewt, ...; several get one setting, by their mean dev score. fdu: all 16 of them."""
    encoders: Annotated[tuple[str, ...], arg(metavar="NAME")] = ("S-LSTM", "BiLSTM")
    data_dir: Folder = None
    """Where the set is; smoke runs do without."""
    embeddings: File = None
    """Word vectors, as for reproduce."""
    out: Folder = None
    """Chosen settings in a folder for the set, and runs; by default runs/tuned, for smoke runs runs/smoke/tuned."""
    trials: Annotated[int, arg(metavar="N")] = 30
    """Of each encoder."""
    together: Annotated[int, arg(metavar="N")] = 6
    """Trials of an encoder that are asked for at once, and can run side by side."""
    prune: Switch = False
    """Run all of these on a quarter of the sets first, of a single set for a quarter of the epochs, and only the better
    half of each encoder to the end."""
    seeds: Annotated[int, arg(metavar="N")] = 1
    """Runs of every trial; their mean dev score counts."""
    finalists: Annotated[int, arg(metavar="N")] = 0
    """So many of the best trials of each encoder are run for every encoder, with more seeds; their mean decides."""
    final_seeds: Annotated[int, arg(metavar="N")] = 5
    """Runs of every finalist, those of its trial among them."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Of the search."""
    settings: Annotated[str, arg(metavar="NAME")] = "paper"
    """What is not searched: a preset (paper, best, fast), or a folder of settings."""
    jobs: Annotated[int, arg(metavar="N")] = 1
    device: Annotated[str, arg(metavar="NAME")] = "auto"
    smoke: Switch = False
    """Tiny models and slices of the data."""


Command = (
    Annotated[Train, subcommand("train")]
    | Annotated[Evaluate, subcommand("evaluate")]
    | Annotated[Predict, subcommand("predict")]
    | Annotated[Export, subcommand("export")]
    | Annotated[Serve, subcommand("serve")]
    | Annotated[Demo, subcommand("demo")]
    | Annotated[Reproduce, subcommand("reproduce")]
    | Annotated[Tune, subcommand("tune")]
)
