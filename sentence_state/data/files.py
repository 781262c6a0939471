"""Files that are there whole or not at all: written beside their place, synced, renamed."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import DataError

UNFINISHED = ".unfinished"


class FolderError(DataError):
    """The folder of a model or a run cannot be read or written as asked; the message is for the user."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place to write to, which becomes `path` at the end; after an error `path` is what it was before.

    A file that is there keeps its mode.
    """
    unfinished = path.with_name(path.name + UNFINISHED)
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        if mode is not None:  # from the beginning: what only its owner may read nobody else reads while it is written
            unfinished.touch()
            unfinished.chmod(mode | stat.S_IWUSR)
        yield unfinished
        if mode is not None:
            unfinished.chmod(mode)
        with open(unfinished, "rb") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        sync_folder(path.parent)
    except OSError as error:
        remove(unfinished)
        raise writing_error(path, error) from error
    except BaseException:
        remove(unfinished)
        raise


def remove(path: Path) -> None:
    """Delete a file, or a folder and all in it, where that can be done."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        return  # a folder that became read-only: the error that brought us here says so


def writing_error(path: Path, error: Exception) -> FolderError:
    full = getattr(error, "errno", None) == errno.ENOSPC or f"os error {errno.ENOSPC}" in str(error)
    reason = "the disk is full" if full else (getattr(error, "strerror", None) or str(error))
    return FolderError.at(path, f"could not be written: {reason}; nothing half-written is left")


def sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, on systems where folders can be synced."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def check_regular(path: Path) -> None:
    """Refuse a pipe or a device in the place of a file: it would be read for ever."""
    if path.exists() and not path.is_file():
        raise FolderError.at(path, "no regular file")


def read_json(path: Path) -> Any:
    """What a JSON file holds, or a FolderError."""
    check_regular(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FolderError.at(path, "no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError.at(path, f"not readable as JSON ({error})") from None
