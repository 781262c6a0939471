"""The sets that runs need: whether they are here, and as they were published, found out before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from ..data.benchmarks import SOURCES, missing
from ..data.errors import DataError
from ..experiments.catalogue import Target
from ..experiments.experiment import Plan
from ..experiments.material import Data, read_set
from .flags import UsageError


def check_out(folder: Path | None) -> None:
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UsageError(f"--out {folder}: it is a file, and must be a folder")


def check_paths(data_dir: Path | None, embeddings: Sequence[Path]) -> None:
    """What is named must be there, for smoke runs too, although they do without where nothing is named."""
    if data_dir is not None and not data_dir.is_dir():
        raise DataError.at(data_dir, "no such folder")
    for path in embeddings:
        if not path.exists():
            raise DataError.at(path, "no such file")


def with_their_sets(targets: Sequence[Target], plan: Plan, data_dir: Path | None, console: Console) -> Sequence[Target]:
    """Those whose sets are all in the data folder. The others are left out, and it is said what they lack; if these are
    all, it is an error."""
    if data_dir is None:  # smoke runs on the embedded sample
        return targets
    lacking = {target.name: error for target in targets if (error := what_it_lacks(target, plan, data_dir))}
    if len(lacking) == len(targets):
        raise next(iter(lacking.values()))
    for name, error in lacking.items():
        console.print(f"left out: {name} ({error})")
    return [target for target in targets if target.name not in lacking]


def what_it_lacks(target: Target, plan: Plan, data_dir: Path) -> DataError | None:
    sets = [data.name for data in sets_needed([target])]
    if not sets:
        return DataError.at(data_dir, "none of the benchmarks is here")
    lacking = [name for name in sets if name in SOURCES and name not in plan.sets]
    if not lacking:
        return None
    first, *others = lacking
    error = missing(first, SOURCES[first], data_dir)
    return DataError(f"{error}. Not here either: {', '.join(others)}") if others else error


def sets_needed(targets: Sequence[Target]) -> list[Data]:
    trained = [run.data for target in targets for run in target.runs]
    measured = [data for target in targets for measurement in target.measurements for data in measurement.data]
    return list(dict.fromkeys([*trained, *measured]))


def say_what_is_unexpected(sets: Sequence[Data], data_dir: Path | None, console: Console) -> None:
    """Of every split that is not as it was published."""
    for sentence in dict.fromkeys(sentence for data in sets for sentence in read_set(data, data_dir)[1]):
        console.print(sentence)
