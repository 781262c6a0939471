"""Files that are replaced whole."""

import os
import stat

import pytest

from sentence_state.data.files import replacing, write_text


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX rights")
@pytest.mark.parametrize("mode", [0o600, 0o400, 0o664])
def test_a_file_keeps_its_mode_and_is_never_open_to_others(tmp_path, mode):
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as unfinished:
        unfinished.write_text("new")
        assert mode_of(unfinished) == mode | stat.S_IWUSR
    assert (path.read_text(), mode_of(path)) == ("new", mode)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX rights")
def test_a_new_file_has_the_mode_of_any_other(tmp_path):
    write_text(tmp_path / "a.json", "new")
    (tmp_path / "b.json").write_text("new")
    assert mode_of(tmp_path / "a.json") == mode_of(tmp_path / "b.json")
