"""What a line says of the machine and of the code that made it."""

import subprocess

from sentence_state.experiments.conditions import commit_of


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_is_that_of_the_packages_own_repository(tmp_path):
    inside = tmp_path / "site-packages"
    for folder in (tmp_path, inside):
        (folder / "sentence_state").mkdir(parents=True)
        (folder / "sentence_state" / "file.py").touch()
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    assert commit_of(tmp_path) == git(tmp_path, "rev-parse", "--short=12", "HEAD")
    assert commit_of(inside) == "unknown"  # installed in somebody's repository
    (tmp_path / "sentence_state" / "file.py").write_text("changed")
    assert commit_of(tmp_path).endswith("+")


def test_the_commit_of_a_folder_without_a_repository_is_unknown(tmp_path):
    assert commit_of(tmp_path) == "unknown"
