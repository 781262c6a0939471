"""Every reader on files of strangers, for a bounded time; `make fuzz` goes on for as long as it is told to."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentence_state.data import DataError, read_embeddings, read_table
from sentence_state.models import ModelConfig
from sentence_state.training import TrainingConfig

from .guard import watched
from .targets import READERS, WORDS, RunFolder, edited, run

BOUNDED = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("name", READERS)
def test_a_reader_gives_examples_or_the_documented_error(name, tmp_path):
    @BOUNDED
    @given(st.binary(max_size=300), st.binary(max_size=30))
    def check(anything, edits):
        with watched(tmp_path):
            run(name, anything, tmp_path)
            run(name, edited(READERS[name][1], edits), tmp_path)

    run(name, READERS[name][1], tmp_path)  # imports what it needs before it is watched
    check()


@pytest.mark.parametrize("cls", [ModelConfig, TrainingConfig])
def test_a_config_of_any_values_is_one_or_a_value_error(cls):
    @BOUNDED
    @given(st.dictionaries(st.sampled_from(sorted(cls().to_dict())), JSON, max_size=3), JSON)
    def check(changes, other):
        for values in ({**cls().to_dict(), **changes}, other):
            try:
                cls.from_dict(values)
            except ValueError:
                continue

    check()


def test_a_run_folder_with_a_changed_file_is_loaded_or_refused(tmp_path):
    folder = RunFolder(tmp_path)
    folder.load(0, lambda content: content)

    @BOUNDED
    @given(st.integers(0, 50), st.binary(max_size=12), JSON)
    def check(place, edits, values):
        with watched(tmp_path):
            folder.load(place, lambda content: edited(content, edits))
            folder.load(place, lambda content: json.dumps(values).encode())

    check()


def test_bombs_are_not_unpacked(tmp_path):
    bomb = gzip.compress(b"a " * 50_000_000)
    (tmp_path / "t.csv.gz").write_bytes(bomb)
    with pytest.raises(DataError, match="more than 200 times its size"):
        read_table(tmp_path / "t.csv.gz")
    (tmp_path / "v.gz").write_bytes(bomb)
    with pytest.raises(DataError, match="a line of more than 16 MB"):
        read_embeddings(tmp_path / "v.gz", WORDS)
    with zipfile.ZipFile(tmp_path / "v.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("v.txt", b"x 0.1 0.2\n" * 10_000_000)
    with pytest.raises(DataError, match="more than 200 times its size"):
        read_embeddings(tmp_path / "v.zip", WORDS)
    (tmp_path / "v.txt").write_bytes(b"1 99999999999999\na 1 2 3\n")
    with pytest.raises(DataError, match="expected a word and its numbers"):
        read_embeddings(tmp_path / "v.txt", WORDS)


def test_a_member_of_an_archive_is_never_written(tmp_path):
    before = sorted(Path(tmp_path).rglob("*"))
    with watched(tmp_path):
        run("zip", READERS["zip"][1], tmp_path)
    assert sorted(Path(tmp_path).rglob("*")) == [*before, tmp_path / "v.zip"]
