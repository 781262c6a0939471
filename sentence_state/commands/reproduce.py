"""sentence-state reproduce: the paper's tables and figures with our numbers beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from ..data.benchmarks import MR_FOLDS, SOURCES, is_here
from ..data.errors import DataError
from ..data.vector_archives import write_archive
from ..experiments.catalogue import NAMES, Target, about, find
from ..experiments.document import Report, Section
from ..experiments.experiment import Plan, name_of
from ..experiments.material import Data, Place, read_splits, vectors_name
from ..experiments.rendering import markdown_table, sections_before, write_report
from ..experiments.report import make_report, used
from ..experiments.runs import Run
from ..experiments.store import RUNS, Store
from ..experiments.summaries import Records, finished
from ..experiments.workers import Crew, leave_group, measure_all, run_all
from ..training import PRESETS
from .console import make_console
from .flags import Reproduce, UsageError
from .load import check_device
from .sets import check_out, check_paths, say_what_is_unexpected, sets_needed, with_their_sets

SMOKE_SEEDS = 2
UNFINISHED = 1  # exit code
SPECS = "specs"  # folder of experiments of one's own, in the folder of the results
OUT = Path("runs/reproduce")  # not results/: what this project finished is not the user's
SMOKE_OUT = Path("runs/smoke")
ALONE = ("list", "vectors")
OTHERS = {
    "all": "All of these.",
    "vectors": "No runs: the word vectors of the sets' words, as one small file for --embeddings.",
    "FILE.json": "Rows of one's own, from a JSON file.",
}


def reproduce(flags: Reproduce) -> int:
    console = make_console()
    if flags.targets == ("list",):
        for name, what in [*((name, about(name)) for name in NAMES), *OTHERS.items()]:
            console.print(f"{name:9} {what}")
        return 0
    if flags.targets == ("vectors",):
        return write_vectors(flags, console)
    names = expand(flags.targets)
    check(flags)
    rank, local_rank = leave_group()
    plan = make_plan(flags.data_dir, one_file(flags.embeddings), flags.seeds, flags.smoke, flags.settings)
    folder = flags.out or (SMOKE_OUT if flags.smoke else OUT)
    complete, of_all = True, "all" in flags.targets
    if flags.report_only:
        check_anything_is_finished(folder)
    else:
        asked = find_asked(names, plan, of_all, console)
        targets = with_their_sets(asked, plan, flags.data_dir, console)
        complete = work(flags, targets, folder, rank, local_rank, console) and len(targets) == len(names)
        names = [target.name for target in targets]
    if rank == 0:  # under torchrun, one process is enough to write
        must_be_there = [name for name in names if not of_all or name not in NAMES]
        shown = report(plan, names, must_be_there, folder, console, flags.report_only)
        without = [name for name in must_be_there if Path(name).stem not in shown]
        for name in without:
            console.print(f"{name}: nothing of it is finished with --settings {' '.join(plan.settings)}")
        complete = complete and not without
    return 0 if complete else UNFINISHED


def find_asked(names: Sequence[str], plan: Plan, of_all: bool, console: Console) -> list[Target]:
    """Of "all", what there are settings for, with those of the settings that there are."""
    found = []
    for name in names:
        usable, errors = usable_settings(name, plan)
        if errors and not (of_all and name in NAMES):
            raise errors[0]
        if usable:
            found.append(find(name, replace(plan, settings=usable)))
        what = f"{name} with other settings than {', '.join(usable)}" if usable else name
        for error in errors:
            console.print(f"left out: {what} ({error})")
    if not found:
        raise UsageError(f"--settings {' '.join(plan.settings)}: there are none for anything that was asked for")
    return found


def usable_settings(name: str, plan: Plan) -> tuple[tuple[str, ...], list[DataError]]:
    """The settings that it can be run with, and what is wrong with the others."""
    usable, errors = [], []
    for settings in plan.settings:
        try:
            find(name, replace(plan, settings=(settings,)))
            usable.append(settings)
        except DataError as error:
            errors.append(error)
    return tuple(usable), errors


def check(flags: Reproduce) -> None:
    if not flags.targets:
        raise UsageError(f"what is to be reproduced? list, {', '.join(NAMES)}, all, vectors, or a JSON file")
    for name, value in (("--seeds", flags.seeds), ("--jobs", flags.jobs)):
        if value < 1:
            raise UsageError(f"{name} must be 1 or more, got {value}")
    names = [name_of(settings) for settings in flags.settings]
    for settings, name in zip(flags.settings, names, strict=True):
        if names.count(name) > 1:
            raise UsageError(f"--settings {settings}: another is called {name} too, as tables would call both")
        if settings not in PRESETS and not Path(settings).is_dir():
            raise UsageError(f"{settings}: neither a preset ({', '.join(PRESETS)}) nor a folder of tuned settings")
    if flags.report_only:
        return
    if flags.data_dir is None and not flags.smoke:
        raise UsageError("--data-dir DIR: the folder with the sets; nothing is downloaded (--smoke does without)")
    check_paths(flags.data_dir, flags.embeddings)
    check_out(flags.out)


def check_anything_is_finished(folder: Path) -> None:
    if not (folder / RUNS).is_file() or all("error" in record for record in Store(folder).records().values()):
        raise DataError.at(folder, "nothing is finished there that could be reported; --out names another folder")


def one_file(embeddings: Sequence[Path]) -> Path | None:
    if len(embeddings) > 1:
        raise UsageError("--embeddings FILE: runs take one; `reproduce vectors` puts several side by side")
    return embeddings[0] if embeddings else None


def make_plan(
    data_dir: Path | None, embeddings: Path | None, seeds: int, smoke: bool, settings: tuple[str, ...]
) -> Plan:
    sets = frozenset(name for name in SOURCES if is_here(name, data_dir)) if data_dir else frozenset()
    return Plan(min(seeds, SMOKE_SEEDS) if smoke else seeds, smoke, settings, vectors_name(embeddings), sets)


def write_vectors(flags: Reproduce, console: Console) -> int:
    """The vectors of all words of the sets in one .npz, under the name of the file that they come from, or of all."""
    if flags.data_dir is None or not flags.embeddings:
        raise UsageError("vectors needs --data-dir DIR and --embeddings FILE")
    check_paths(flags.data_dir, flags.embeddings)
    names = [name for name in SOURCES if name not in MR_FOLDS and is_here(name, flags.data_dir)]
    splits = [read_splits(Data(name), flags.data_dir) for name in names]
    words = {word for part in splits for e in (*part.train, *part.dev, *part.test) for word in e.words}
    path = (flags.out or OUT) / f"{'+'.join(map(vectors_name, flags.embeddings))}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    _, found = write_archive(flags.embeddings, sorted(words), path)
    size = path.stat().st_size / 2**20
    console.print(
        f"{path}: vectors of {found:,} spellings for {len(words):,} words of {', '.join(names)}; {size:.1f} MiB"
    )
    return 0


def expand(targets: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(name for target in targets for name in (NAMES if target == "all" else (target,))))
    for name in names:
        if name in ALONE:
            raise UsageError(f"{name} goes with no other target: `sentence-state reproduce {name}`")
        if name not in NAMES and not name.endswith(".json"):
            known = ", ".join(["list", *NAMES, "all", "vectors"])
            raise UsageError(f"there is no {name!r} to reproduce; there are {known}, and files that end in .json")
    return names


def work(
    flags: Reproduce, targets: Sequence[Target], folder: Path, rank: int, local_rank: int, console: Console
) -> bool:
    """Train, then measure with nothing beside it; whether all of it could be finished."""
    place = Place(flags.data_dir, one_file(flags.embeddings), str(check_device(flags.device)))
    crew = Crew(flags.jobs, place, local_rank)
    say_what_is_unexpected(sets_needed(targets), flags.data_dir, console)
    left = run_all([run for target in targets for run in target.runs], folder, crew, console.print)
    if left:
        console.print(f"{len(left)} runs are not finished; the same command goes on with them")
    measurements = [one for target in targets for one in target.measurements if rank == 0]
    if flags.skip_times:
        measurements = [one for one in measurements if one.kind == "statistics"]
    measure_all(measurements, folder, place, console.print)
    return not left


def report(
    plan: Plan, asked: Sequence[str], must_be_there: Sequence[str], folder: Path, console: Console, report_only: bool
) -> set[str]:
    """All that is finished in this folder, experiments of its own specs/ too, not only what was asked for now. Returns
    the names of its sections."""
    records = Store(folder).records()
    sets = plan.sets or sets_of(records, plan.smoke)
    plan = replace(plan, seeds=max(plan.seeds, *seeds_of(records)), sets=sets)
    own = {Path(name).resolve(): name for name in asked if name not in NAMES}
    own = {path.resolve(): str(path) for path in sorted((folder / SPECS).glob("*.json"))} | own
    found = [
        target
        for name in (*NAMES, *own.values())
        for target in find_for_report(name, plan, records, name in must_be_there, console)
    ]
    asked_for = f"--settings {' '.join(plan.settings)}{' --smoke' if plan.smoke else ', without --smoke'}"
    if report_only and not any(used(target, records) for target in found):
        raise DataError.at(folder, f"nothing is finished there with {asked_for}: the report would be empty")
    document = make_report(found, records, plan.smoke)
    check_nothing_is_lost(document, folder, asked_for, report_only, console)
    shown = {Path(name).stem for name in asked}
    for section in document.sections:
        if section.name in shown:
            console.print(f"\n{document.mark}{section.title}\n")
            for table in section.tables:
                console.print(f"{markdown_table(table)}\n")
    paths = write_report(document, folder)
    console.print(f"\nreport: {', '.join(map(str, paths))}")
    return {section.name for section in document.sections}


def check_nothing_is_lost(document: Report, folder: Path, asked_for: str, refuse: bool, console: Console) -> None:
    """A report is of the settings that are named: one of all takes no other's place unseen."""
    before, now = sections_before(folder), len(document.sections)
    if now >= before:
        return
    what = f"the report there has {before} sections, with {asked_for} it has {now}"
    if refuse:
        raise DataError.at(folder, f"{what}; --settings takes all that were used, --out names another folder")
    console.print(f"{folder}: {what}; --report-only with all the --settings that were used brings them back")


def find_for_report(name: str, plan: Plan, records: Records, must_be_there: bool, console: Console) -> list[Target]:
    """With those settings by which half of it or more was run, else the first that has any for it. A table for each of
    the word vectors that most of it was run with, a figure for the last of them. Nothing where no settings have any:
    what was asked for is an error then, of the rest a report is written nevertheless."""
    usable, errors = usable_settings(name, plan)
    if not usable:
        if must_be_there:
            raise errors[0]
        if name not in NAMES:
            console.print(f"not in the report: {name} ({errors[0]})")
        return []
    names = {record["run"]["vectors"] for record in records.values() if "run" in record} or {plan.vectors}
    plans = [replace(plan, settings=usable, vectors=vectors) for vectors in sorted(names)]
    extents = {one.vectors: extent(find(name, one), records) for one in plans}
    most = max(done for done, _ in extents.values())
    plans = sorted((one for one in plans if extents[one.vectors][0] == most), key=lambda one: extents[one.vectors])
    if name.startswith("figure") or not most:
        plans = plans[-1:]
    found = [find(name, with_its_settings(name, one, records)) for one in plans]
    if sum(done > 0 for done, _ in extents.values()) > 1:
        found = [with_vectors(target, one.vectors) for target, one in zip(found, plans, strict=True)]
    return found


def with_its_settings(name: str, plan: Plan, records: Records) -> Plan:
    single = {settings: replace(plan, settings=(settings,)) for settings in plan.settings}
    shown = [settings for settings, one in single.items() if extent(find(name, one), records)[0] >= 0.5]
    return replace(plan, settings=tuple(shown or plan.settings[:1]))


def with_vectors(target: Target, vectors: str) -> Target:
    """It says which word vectors it was run with."""

    def section(records: Records) -> Section:
        made = target.section(records)
        made.title += f"; word vectors: {vectors}"
        return made

    return replace(target, section=section)


def extent(target: Target, records: Records) -> tuple[float, str]:
    """Of its different runs, seeds aside, how many have a finished one; and when the last of them was."""
    done: dict[Run, bool] = {}
    last = ""
    for run in target.runs:
        kind, record = replace(run, training=replace(run.training, seed=0)), finished(run, records)
        done[kind] = done.get(kind, False) or record is not None
        last = max(last, record["finished"] if record else "")
    return sum(done.values()) / max(1, len(done)), last


def seeds_of(records: Records) -> list[int]:
    return [0, *(record["run"]["training"]["seed"] + 1 for record in records.values() if "run" in record)]


def sets_of(records: Records, smoke: bool) -> frozenset[str]:
    """The sets of which there are results, or if `smoke` such of slices, where no data folder is named."""
    trained = [record["run"]["data"] for record in records.values() if "run" in record]
    measured = [data for record in records.values() if "run" not in record for data in record["data"]]
    return frozenset(data["name"] for data in trained + measured if (data["limit"] > 0) == smoke) & SOURCES.keys()
