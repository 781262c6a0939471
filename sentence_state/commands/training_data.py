"""Flags -> examples: the user's files, a named benchmark, the embedded sample or a set of the hub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..data import (
    Corpus,
    Example,
    Splits,
    Tokenizer,
    check_training_data,
    read_benchmark,
    read_hub,
    read_sample,
    split_off_dev,
)
from ..data.blocks import Form
from ..data.checks import refuse_unknown_labels, unknown_tags
from ..data.marked import marked_corpus
from ..data.streamed_forms import column_form, marked_form, table_form
from ..data.streaming import StreamedExamples, Survey
from ..data.tables import table_corpus
from ..data.tagged_files import tagged_corpus, unify_tags
from ..data.text_files import TextFile, read_text
from .flags import Classifier, ColumnFlags, Joint, TableFlags, Tagger, TrainFlags, UsageError

TARGET_SCHEME = "bioes"
TASK_OF_SETS = {"classifier": "classification", "tagger": "tagging"}
TARGETS = {"classifier": ("label",), "tagger": ("tags",), "joint": ("label", "tags")}
HEADER = {"auto": None, "yes": True, "no": False}
SHOWN = 20


@dataclass
class Material:
    """What a model is trained on, and as sentences for the user how it was found."""

    splits: Splits
    notes: list[str]
    tokenizer: Tokenizer | None = None
    tag_scheme: str | None = None  # of streamed tags; otherwise they are looked at
    columns: dict[str, str] = field(default_factory=dict)  # of train, a table


def task_of(flags: TrainFlags) -> str:
    return type(flags).__name__.lower()


def read_material(flags: TrainFlags) -> Material:
    """Train, dev and test; a dev set is split off where there is none."""
    source = flags.sources
    if (source.train is None) == (source.data is None):
        raise UsageError("give either --train FILE or --data NAME")
    if source.data is not None and (source.dev or source.test):
        raise UsageError("--dev and --test go with --train; --data brings its own")
    if source.stream:
        return read_streamed(flags)
    material = read_named(flags, source.data) if source.data is not None else read_files(flags)
    if not material.splits.dev:
        split_dev(flags, material)
    splits = material.splits
    material.notes += check_training_data(splits.train, splits.dev, splits.test)
    return material


def split_dev(flags: TrainFlags, material: Material) -> None:
    examples, fraction = material.splits.train, flags.sources.dev_fraction
    if not 0 < fraction < 1:
        raise UsageError(f"--dev-fraction must lie between 0 and 1, got {fraction}")
    check_training_data(examples)  # one class, or a wrong column: to be said before a split is tried
    material.splits.train, material.splits.dev = split_off_dev(examples, fraction, flags.seed)
    found = f"{len(material.splits.dev):,} of {len(examples):,} examples"
    material.notes.append(f"no dev set given: {found} split off at random (--seed {flags.seed})")


# ---- files ------------------------------------------------------------------------------------------


def read_files(flags: TrainFlags) -> Material:
    """All files are read as the first: with its columns and its tag scheme, where these had to be found out."""
    source = flags.sources
    first = Corpus("", [])
    corpora = []
    for path in (source.train, source.dev, source.test):
        corpora.append(read_file(flags, path, first) if path is not None else Corpus("", []))
        first = corpora[0]
    notes = [note for corpus in corpora for note in corpus.description]
    if isinstance(flags, Joint):
        notes += describe_targets(corpora[0].examples, ("label", "tags"))
    splits = Splits(*(corpus.examples for corpus in corpora))
    return Material(splits, notes, tokenizer_of(flags), columns=first.columns)


def read_file(flags: TrainFlags, path: Path, first: Corpus) -> Corpus:
    file = read_text(path, flags.encoding)
    if isinstance(flags, Classifier):
        return labelled_corpus(file, flags.table, tokenizer_of(flags), first.columns)
    if isinstance(flags, Tagger):
        return words_corpus(file, flags.columns, first.tag_scheme, TARGET_SCHEME)
    return marked_corpus(file, TARGET_SCHEME, tokenizer_of(flags))


def labelled_corpus(file: TextFile, flags: TableFlags, tokenizer: Tokenizer, usual: Mapping[str, str]) -> Corpus:
    return table_corpus(
        file,
        text_column=flags.text_column,
        label_column=flags.label_column,
        labelled=True,
        tokenizer=tokenizer,
        delimiter=delimiter_of(flags.delimiter),
        header=HEADER[flags.header],
        skip_empty=flags.skip_empty,
        usual=usual,
    )


def words_corpus(file: TextFile, flags: ColumnFlags, scheme: str | None, target_scheme: str) -> Corpus:
    """`scheme` is that of an earlier file; the user's --tag-scheme goes before it."""
    corpus = tagged_corpus(file, flags.word_column, tag_column_of(flags.tag_column))
    scheme = flags.tag_scheme if flags.tag_scheme != "auto" else scheme or "auto"
    unify_tags(corpus, scheme, target_scheme, flags.broken_tags)
    return corpus


def tokenizer_of(flags: TrainFlags) -> Tokenizer:
    """It cuts the texts of the files, and later those that the model is asked about: it is saved with the model."""
    if not isinstance(flags, Classifier):
        return Tokenizer()
    return Tokenizer(whitespace=flags.table.tokenized, contractions=not flags.table.keep_contractions)


def tag_column_of(name: str | None) -> int | str:
    """The last column by default; a number, or the name of a column of CoNLL-U."""
    if name is None:
        return -1
    if name in ("xpos", "upos"):
        return name
    try:
        return int(name)
    except ValueError:
        raise UsageError(f"--tag-column must be a number, xpos or upos, got {name!r}") from None


def delimiter_of(written: str | None) -> str | None:
    """A shell hands \\t over as two characters."""
    delimiter = {"\\t": "\t", "tab": "\t"}.get(written or "", written)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '\n\r"'):
        raise UsageError(f"--delimiter must be one character, or tab, got {written!r}")
    return delimiter


# ---- files larger than memory -----------------------------------------------------------------------


def read_streamed(flags: TrainFlags) -> Material:
    """Train stays on disk: one pass over it counts words, labels and tags, and splits off dev where there is none."""
    source = flags.sources
    if source.train is None:
        raise UsageError("--stream goes with --train FILE, a folder or a pattern")
    if source.dev is None and not 0 < source.dev_fraction < 1:
        raise UsageError(f"--dev-fraction must lie between 0 and 1, got {source.dev_fraction}")
    paths = matching_files(source.train)
    form, scheme = form_of(flags, paths[0])
    train = StreamedExamples(paths, form, 0.0 if source.dev else source.dev_fraction, flags.seed)
    found = train.survey
    notes = [f"{source.train}: {found.sentences:,} sentences, {found.tokens:,} words in {len(paths):,} files, streamed"]
    notes += [f"{form.description}, {form.encoding or 'UTF-8'}"]
    notes += [f"{len(counts)} {name}: {shown(counts)}" for name, counts in streamed_targets(flags, found).items()]
    first = Corpus("", [], columns=form.columns)
    others = [read_file(flags, path, first).examples if path is not None else [] for path in (source.dev, source.test)]
    if source.dev is None:
        if not found.dev:
            message = f"{found.sentences:,} sentences are too few to split off a dev set: give --dev FILE"
            raise UsageError(f"{source.train}: {message}")
        others[0] = found.dev
        notes.append(f"no dev set given: {len(found.dev):,} of them split off at random (--seed {flags.seed})")
    if found.labels:
        refuse_unknown_labels(found.labels, str(source.train), others)
    if found.tags:
        notes += unknown_tags(found.tags, str(source.train), others)
    return Material(Splits(train, others[0], others[1]), notes, tokenizer_of(flags), scheme, form.columns)


def matching_files(path: Path) -> list[Path]:
    """The file, all files of a folder, or all that a pattern fits, by name."""
    if path.is_dir():
        found = [file for file in path.iterdir() if file.is_file() and not file.name.startswith(".")]
    elif "*" in path.name or "?" in path.name:
        found = [file for file in path.parent.glob(path.name) if file.is_file()]
    elif path.exists() and not path.is_file():
        raise UsageError(f"{path}: a pipe is read once, --stream reads in every epoch: save it as a file")
    else:
        return [path]
    if not found:
        raise UsageError(f"{path}: there is no file")
    return sorted(found)


def form_of(flags: TrainFlags, path: Path) -> tuple[Form, str | None]:
    if isinstance(flags, Classifier):
        table = flags.table
        form = table_form(
            path,
            text_column=table.text_column,
            label_column=table.label_column,
            tokenizer=tokenizer_of(flags),
            delimiter=delimiter_of(table.delimiter),
            header=HEADER[table.header],
            encoding=flags.encoding,
            skip_empty=table.skip_empty,
        )
        return form, None
    if isinstance(flags, Tagger):
        columns = flags.columns
        return column_form(
            path,
            word_column=columns.word_column,
            tag_column=tag_column_of(columns.tag_column),
            tag_scheme=columns.tag_scheme,
            target_scheme=TARGET_SCHEME,
            broken=columns.broken_tags,
            encoding=flags.encoding,
        )
    form = marked_form(path, target_scheme=TARGET_SCHEME, tokenizer=tokenizer_of(flags), encoding=flags.encoding)
    return form, TARGET_SCHEME


def streamed_targets(flags: TrainFlags, found: Survey) -> dict[str, Counter[str]]:
    """What there is to learn; one class alone is nothing."""
    counts = {"label": found.labels, "tags": found.tags}
    wanted = {("labels" if name == "label" else name): counts[name] for name in TARGETS[task_of(flags)]}
    for name, values in wanted.items():
        if len(values) < 2:
            raise UsageError(f"--train: every one of the {name} is {next(iter(values), None)!r}: nothing to learn")
    return wanted


# ---- sets with a name -------------------------------------------------------------------------------


def read_named(flags: TrainFlags, name: str) -> Material:
    task = task_of(flags)
    targets = TARGETS[task]
    if name == "sample":
        sample = read_sample(TARGET_SCHEME, targets)
        return describe_splits("the embedded sample, utterances to an assistant", sample, targets)
    if task == "joint":
        raise UsageError(f"train joint knows the set sample only, got --data {name}")
    if name.startswith("hub:"):
        return read_from_hub(flags, name.removeprefix("hub:"), targets)
    if flags.sources.data_dir is None:
        raise UsageError(f"--data {name} needs --data-dir DIR, the folder to look in; nothing is downloaded")
    return read_from_folder(flags, name, flags.sources.data_dir, targets)


def read_from_folder(flags: TrainFlags, name: str, folder: Path, targets: Sequence[str]) -> Material:
    task = task_of(flags)
    keep = isinstance(flags, Classifier) and flags.table.keep_contractions
    tokenizer = Tokenizer(whitespace=True, contractions=not keep)
    benchmark = read_benchmark(name, folder, tokenizer=tokenizer, target_scheme=TARGET_SCHEME)
    if benchmark.task != TASK_OF_SETS[task]:
        other = next(key for key, value in TASK_OF_SETS.items() if value == benchmark.task)
        raise UsageError(f"{name} is a set for {benchmark.task}: sentence-state train {other} --data {name}")
    notes = [*benchmark.description, *describe_targets(benchmark.splits.train, targets)]
    return Material(benchmark.splits, notes, tokenizer if task == "classifier" else None)


def read_from_hub(flags: TrainFlags, name: str, targets: Sequence[str]) -> Material:
    """hub:<name>, or hub:<name>:<configuration>."""
    name, _, configuration = name.partition(":")
    table = flags.table if isinstance(flags, Classifier) else TableFlags()
    splits = read_hub(
        name,
        task=TASK_OF_SETS[task_of(flags)],
        configuration=configuration or None,
        text_column=table.text_column,
        label_column=table.label_column,
        tokenizer=tokenizer_of(flags),
        target_scheme=TARGET_SCHEME,
    )
    return describe_splits(f"{name} of the Hugging Face hub", splits, targets, tokenizer_of(flags))


def describe_splits(name: str, splits: Splits, targets: Sequence[str], tokenizer: Tokenizer | None = None) -> Material:
    sizes = ", ".join(f"{len(part):,} {use}" for use, part in vars(splits).items())
    return Material(splits, [f"{name}: {sizes}", *describe_targets(splits.train, targets)], tokenizer)


def describe_targets(examples: Sequence[Example], targets: Sequence[str]) -> list[str]:
    """The distribution of labels and of tags, the most frequent first."""
    counts = {
        "labels": Counter(example.label for example in examples if example.label),
        "tags": Counter(tag for example in examples for tag in example.tags or ()),
    }
    wanted = {"label": "labels", "tags": "tags"}
    return [f"{len(counts[name])} {name}: {shown(counts[name])}" for name in (wanted[target] for target in targets)]


def shown(counts: Counter[str]) -> str:
    listed = ", ".join(f"{name} {count:,}" for name, count in counts.most_common(SHOWN))
    return listed + (", ..." if len(counts) > SHOWN else "")
