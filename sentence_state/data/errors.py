"""The error for the user: something is wrong in the data or a file, not in the program."""

from __future__ import annotations

from os import PathLike
from typing import Self


class DataError(ValueError):
    """A message for the user that starts with `file:line:`, or with `file:` where no line can be named."""

    @classmethod
    def at(cls, path: str | PathLike[str], message: str, line: int | None = None) -> Self:
        where = f"{path}:{line}" if line else f"{path}"
        return cls(f"{where}: {message}")
