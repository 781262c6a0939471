"""sentence-state predict: answers for texts from the command line, a file or standard input."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO

from ..data import DataError, Example
from ..data.description import is_unicode
from ..data.files import FolderError, replacing
from ..data.predictions import Prediction
from ..models import Model
from .console import coloured, colours_of, make_console
from .flags import Predict, UsageError
from .input_files import read_input_file
from .load import load_model

NOT_WRITTEN = (".gz", ".zip", ".xlsx", ".xls", ".ods", ".parquet")  # what stands in such a file is no text
DESCRIPTOR = re.compile(r"/dev/std(?:out|err)|/(?:dev|proc/self)/fd/\d+")
MOST_LINKS = 40  # that lead to each other, as in Linux
LINE_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
Answer = tuple[str, Prediction]  # a text and what the model says of it
AT_ONCE = 16  # batches that are read, answered and written together: any size of input, the same memory


def predict(flags: Predict) -> int:
    if flags.texts and flags.input:
        raise UsageError("give either texts or --input FILE, not both")
    if flags.output and not flags.output.parent.is_dir():
        raise UsageError(f"{flags.output}: there is no folder {flags.output.parent}")
    if flags.output and flags.output.is_dir():
        raise UsageError(f"{flags.output}: this is a folder: give --output a file")
    if flags.output and flags.output.suffix.lower() in NOT_WRITTEN:
        raise UsageError(f"{flags.output}: answers are written as .csv, .tsv or .jsonl")
    if flags.output and flags.input and flags.output.is_file() and flags.output.samefile(flags.input):
        raise UsageError(f"{flags.output}: this is the input, which would be lost: choose another --output")
    if not flags.texts and not flags.input and sys.stdin is None:
        raise DataError.at("standard input", "is closed")
    model = load_model(flags.run, flags.device, flags.batch_size)
    answers = answer(flags, model)
    if flags.output is None:
        print_answers(answers, model, flags.json)
    else:
        write_answers(answers, flags.output, model.targets, flags.json)
        make_console(stderr=True).print(f"answers written to {flags.output}")
    return 0


def answer(flags: Predict, model: Model) -> Iterator[Answer]:
    """Texts with their predictions, in order."""
    typed = not flags.texts and not flags.input and sys.stdin.isatty()
    for chunk in chunks(read_examples(flags, model), 1 if typed else flags.batch_size * AT_ONCE):
        for example, prediction in zip(chunk, model.answer(chunk, flags.batch_size), strict=True):
            yield example.located()[0], prediction


def read_examples(flags: Predict, model: Model) -> Iterator[Example]:
    if flags.texts:
        for number, text in enumerate(flags.texts, start=1):
            example = Example.of_text(text, model.tokenizer)
            if not example.words:
                raise UsageError(f"text {number} has no words: {text!r}")
            if not is_unicode(text):  # bytes of the shell that Python could not read
                raise UsageError(f"text {number} is not UTF-8: {text!r}")
            yield example
    elif flags.input is None:
        yield from read_standard_input(model)
    else:
        corpus = read_input_file(flags, flags.input, model)
        say(corpus.description)
        yield from corpus.examples


def read_standard_input(model: Model) -> Iterator[Example]:
    if sys.stdin.isatty():
        make_console(stderr=True).print("one text a line; Ctrl-D ends", style="dim")
    answered = skipped = first = 0
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            message = f"byte 0x{line[error.start]:02x} is not UTF-8; give other encodings as --input FILE --encoding"
            raise DataError.at("standard input", message, number) from None
        example = Example.of_text(text, model.tokenizer)
        if example.words:
            answered += 1
            yield example
        else:
            skipped, first = skipped + 1, first or number
    if not answered:
        raise DataError.at("standard input", "no text came")
    if skipped:
        say([f"{skipped:,} lines without text left out (the first is line {first})"])


def say(notes: Sequence[str]) -> None:
    """Beside the answers, which may go into a pipe."""
    for note in notes:
        make_console(stderr=True).print(note)


def chunks(examples: Iterable[Example], size: int) -> Iterator[list[Example]]:
    rest = iter(examples)
    while chunk := list(islice(rest, size)):
        yield chunk


# ---- answers ----------------------------------------------------------------------------------------


def print_answers(answers: Iterable[Answer], model: Model, as_json: bool) -> None:
    console = make_console()
    tags = model.vocabularies.tags
    colours = colours_of([tag[2:] if model.tag_scheme != "plain" else tag for tag in tags.words] if tags else [])
    for text, prediction in answers:
        if as_json:
            print(json_line(text, prediction), flush=True)
        else:
            console.print(coloured(LINE_BREAKS.sub(" ", text), prediction, console, colours))


def write_answers(answers: Iterable[Answer], path: Path, targets: Sequence[str], as_json: bool) -> None:
    with answers_file(path) as file:
        suffix = path.suffix.lower()
        if suffix in (".csv", ".tsv") and not as_json:
            write_table(answers, file, "\t" if suffix == ".tsv" else ",", targets)
        else:
            file.writelines(json_line(text, prediction) + "\n" for text, prediction in answers)


@contextmanager
def answers_file(path: Path) -> Iterator[IO[str]]:
    """The whole file or none of it, at the end of a link; but pipes and devices are written to as they are."""
    end = end_of_links(path)
    if DESCRIPTOR.fullmatch(str(end)):  # opened by its number: after what others wrote there, were it a file
        place: Path | int = {"stdout": 1, "stderr": 2}.get(end.name) or int(end.name)
    elif path.exists() and not path.is_file():
        place = path
    else:
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        with replacing(target) as unfinished, open(unfinished, "w", encoding="utf-8", newline="") as file:
            yield file
        return
    try:
        with open(place, "w", encoding="utf-8", newline="", closefd=place is path) as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FolderError.at(path, f"could not be written: {error.strerror or error}") from error


def end_of_links(path: Path) -> Path:
    """Where a link leads, but no further than an open file of this process, which is a link too."""
    for _ in range(MOST_LINKS):
        if DESCRIPTOR.fullmatch(str(path)) or not path.is_symlink():
            break
        path = Path(os.path.normpath(Path(os.path.realpath(path.parent), os.readlink(path))))
    return path


def json_line(text: str, prediction: Prediction) -> str:
    return json.dumps({"text": text, **prediction}, ensure_ascii=False)


def write_table(answers: Iterable[Answer], file: IO[str], delimiter: str, targets: Sequence[str]) -> None:
    """Columns text, label and score; spans, where there are any, as JSON in one column more."""
    rows = csv.writer(OneLine(file), delimiter=delimiter)
    names = ["text", *(["label", "score"] if "label" in targets else []), *(["spans"] if "tags" in targets else [])]
    rows.writerow(names)
    for text, prediction in answers:
        spans = json.dumps(prediction["spans"], ensure_ascii=False)
        cells = {"text": text, "label": prediction["label"], "score": prediction["score"], "spans": spans}
        rows.writerow([cells[name] for name in names])


class OneLine:
    """Rows that csv ends with CR LF, for else it leaves a CR in a text without quotes, end with LF in the file."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file

    def write(self, row: str) -> int:
        return self.file.write(row.removesuffix("\r\n") + "\n")
