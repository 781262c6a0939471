"""Which files `train --stream` reads."""

import os

import pytest

from sentence_state.commands.flags import UsageError
from sentence_state.commands.training_data import matching_files


def test_a_file_all_of_a_folder_or_all_that_fit_a_pattern(tmp_path):
    for name in ("b.csv", "a.csv", ".hidden.csv", "c.tsv"):
        (tmp_path / name).write_text("text,label\n")
    assert matching_files(tmp_path / "a.csv") == [tmp_path / "a.csv"]
    assert matching_files(tmp_path) == [tmp_path / name for name in ("a.csv", "b.csv", "c.tsv")]
    assert matching_files(tmp_path / "[ab].c*") == [tmp_path / name for name in ("a.csv", "b.csv")]
    with pytest.raises(UsageError, match="there is no file"):
        matching_files(tmp_path / "*.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_for_it_gives_what_it_holds_only_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe: a pipe is read once, --stream reads in every epoch: save it as a file"):
        matching_files(tmp_path / "pipe")
