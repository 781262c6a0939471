"""What reads files of strangers: target(data, folder) may raise the documented errors, and nothing else."""

import contextlib
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sentence_state.data import Vocabulary, read_embeddings, read_marked, read_table, read_tagged
from sentence_state.data.errors import DataError
from sentence_state.data.penn_treebank import read_section
from sentence_state.data.streamed_forms import column_form, marked_form, table_form
from sentence_state.data.streaming import StreamedExamples
from sentence_state.data.tables import read_lines
from sentence_state.models import Model, ModelConfig, TextClassifier
from sentence_state.training import TrainingConfig, fit
from sentence_state.training.checkpoint import load_checkpoint

from ..models.synthetic import small, splits

WORDS = Vocabulary(["a", "film", "good", "the"], [1, 1, 1, 1])
SEEDS = {
    "csv": b'text,label\n"a ""fine"" film",pos\na dull one,neg\n',
    "tsv": b"pos\ta fine film\nneg\tdull\n",
    "jsonl": b'{"text": "a film", "label": "pos"}\n{"label": 1, "text": "dull"}\n',
    "txt": b"a film\nanother\n",
    "conll": b"-DOCSTART- O\n\nJohn B-PER\nSmith I-PER\nsat O\n\n# comment\nin O\nRome B-LOC\n",
    "conllu": b"# text = it\n1\tit\tit\tPRON\tPRP\t_\t0\troot\t_\t_\n2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n\n",
    "marked": b"play\tplay some [jazz](genre)\nstop\tstop it\n",
    "mrg": b"( (S (NP (NNP Vinken)) (VP (VBD sat)) (. .)) )\n",
    "pos": b"[ Pierre/NNP Vinken/NNP ]\n,/,\nsat/VBD ./.\n",
    "vectors": b"2 3\na 0.1 -0.2 3e-1\nfilm 1 2 3\n",
}


def archive() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, words=np.frombuffer(b"a\nfilm", np.uint8), vectors=np.ones((2, 3), np.float16))
    return file.getvalue()


def written(data: bytes, folder: Path, name: str) -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def streamed_table(data: bytes, folder: Path) -> None:
    path = written(data, folder, "s.data")
    list(StreamedExamples([path], table_form(path), 0.5))


def streamed_columns(data: bytes, folder: Path) -> None:
    path = written(data, folder, "s.conll")
    list(StreamedExamples([path], column_form(path)[0]))


def streamed_marked(data: bytes, folder: Path) -> None:
    path = written(data, folder, "s.txt")
    list(StreamedExamples([path], marked_form(path)))


def zipped(data: bytes, folder: Path) -> None:
    with zipfile.ZipFile(folder / "v.zip", "w") as file:
        file.writestr("../../v.txt", data)
    read_embeddings(folder / "v.zip", WORDS)


def packed(data: bytes, folder: Path) -> None:
    read_embeddings(written(gzip.compress(data), folder, "v.gz"), WORDS)
    read_table(written(gzip.compress(data), folder, "t.csv.gz"))


def config(data: bytes, folder: Path) -> None:
    values = json.loads(data)
    ModelConfig.from_dict(values)
    TrainingConfig.from_dict(values)


READERS: dict[str, tuple[Callable[[bytes, Path], object], bytes]] = {
    "csv": (lambda data, folder: read_table(written(data, folder, "t.csv")), SEEDS["csv"]),
    "tsv": (lambda data, folder: read_table(written(data, folder, "t.tsv"), skip_empty=True), SEEDS["tsv"]),
    "jsonl": (lambda data, folder: read_table(written(data, folder, "t.jsonl")), SEEDS["jsonl"]),
    "lines": (lambda data, folder: read_lines(written(data, folder, "t.txt")), SEEDS["txt"]),
    "columns": (lambda data, folder: read_tagged(written(data, folder, "t.conll")), SEEDS["conll"]),
    "repaired": (lambda data, folder: read_tagged(written(data, folder, "t.c"), broken="repair"), SEEDS["conll"]),
    "conllu": (lambda data, folder: read_tagged(written(data, folder, "t.conllu")), SEEDS["conllu"]),
    "marked": (lambda data, folder: read_marked(written(data, folder, "m.txt")), SEEDS["marked"]),
    "trees": (lambda data, folder: read_section([written(data, folder, "wsj_0001.mrg")]), SEEDS["mrg"]),
    "tagged text": (lambda data, folder: read_section([written(data, folder, "wsj_0001.pos")]), SEEDS["pos"]),
    "vectors": (lambda data, folder: read_embeddings(written(data, folder, "v.txt"), WORDS), SEEDS["vectors"]),
    "damaged gzip": (
        lambda data, folder: read_embeddings(written(data, folder, "v.gz"), WORDS),
        gzip.compress(SEEDS["vectors"], mtime=0),
    ),
    "damaged archive": (lambda data, folder: read_embeddings(written(data, folder, "v.npz"), WORDS), archive()),
    "damaged zip": (lambda data, folder: read_embeddings(written(data, folder, "v.zip"), WORDS), b"PK\x03\x04"),
    "zip": (zipped, SEEDS["vectors"]),
    "gzip": (packed, SEEDS["csv"]),
    "streamed table": (streamed_table, SEEDS["csv"]),
    "streamed objects": (streamed_table, SEEDS["jsonl"]),
    "streamed columns": (streamed_columns, SEEDS["conll"]),
    "streamed marks": (streamed_marked, SEEDS["marked"]),
    "vocabulary": (lambda data, folder: Vocabulary.load(written(data, folder, "w.json")), WORDS.to_json().encode()),
    "config": (config, json.dumps(ModelConfig().to_dict()).encode()),
}
DOCUMENTED = {"config": (ValueError, RecursionError)}  # for the others a DataError with the file's name


class RunFolder:
    """A run that stopped in the middle, whose files are replaced one at a time by others."""

    def __init__(self, folder: Path) -> None:
        self.run, self.data = folder / "run", splits(16, 4, 0)

        class Stop(BaseException):
            pass

        def stop(event: object) -> None:
            raise Stop

        model = self.model()
        with contextlib.suppress(Stop):
            fit(model, self.data, self.CONFIG, out=self.run, progress=stop)
        model.save_pretrained(self.run)
        self.files = {path: path.read_bytes() for path in sorted(self.run.rglob("*")) if path.is_file()}

    CONFIG = TrainingConfig(epochs=1, batch_size=8, checkpoint_seconds=0)

    def model(self) -> TextClassifier:
        return TextClassifier.from_examples(self.data.train, small())

    def load(self, place: int, change: Callable[[bytes], bytes]) -> None:
        """Load the model, the checkpoint and the run with one file changed; all of them are put back afterwards."""
        path = list(self.files)[place % len(self.files)]
        path.write_bytes(change(self.files[path]))
        try:
            for action in (
                lambda: Model.from_pretrained(self.run),
                lambda: load_checkpoint(self.run),
                lambda: fit(self.model(), self.data, self.CONFIG, out=self.run, resume=True),
            ):
                try:
                    action()
                except DataError:
                    continue
        finally:
            for old in sorted(self.run.rglob("*"), reverse=True):
                if old.is_file() and old not in self.files:
                    old.unlink()
            for file, content in self.files.items():
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(content)


def edited(seed: bytes, edits: bytes) -> bytes:
    """A valid file with changes: each three bytes of `edits` delete, replace, insert or repeat somewhere."""
    content = bytearray(seed)
    for start in range(0, len(edits) - 2, 3):
        where, how, value = edits[start : start + 3]
        place = (where * 257 + value) % (len(content) + 1)
        if how % 5 == 0:
            del content[place : place + 1 + value % 16]
        elif how % 5 == 1 and place < len(content):
            content[place] = value
        elif how % 5 == 2:
            content[place:place] = bytes([value])
        elif how % 5 == 3:
            content[place:place] = content[max(0, place - value) : place]
        else:
            del content[place:]
    return bytes(content)


def run(name: str, data: bytes, folder: Path) -> None:
    """One target on one input; a documented error is an answer."""
    try:
        READERS[name][0](data, folder)
    except DOCUMENTED.get(name, DataError):
        return
