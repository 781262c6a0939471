"""sentence-state reproduce: the paper's tables and figures with our numbers beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table

from ..data.benchmarks import SOURCES, is_here
from ..experiments.catalogue import EXPERIMENTS
from ..experiments.experiment import Experiment, Plan
from ..experiments.grid import grid
from ..experiments.material import Place, vectors_name
from ..experiments.store import Store
from ..experiments.summaries import Records, summarise
from ..experiments.workers import Crew, run_all
from .console import make_console
from .flags import Reproduce, UsageError
from .load import check_device

SMOKE_SEEDS = 2
UNFINISHED = 1  # exit code


def reproduce(flags: Reproduce) -> int:
    console = make_console()
    if flags.targets == ("list",):
        for name, make in EXPERIMENTS.items():
            console.print(f"{name:9} {(make.__doc__ or '').strip()}")
        return 0
    check(flags)
    plan = make_plan(flags)
    experiments = [find(target, plan) for target in expand(flags.targets)]
    folder = flags.out or Path("runs/smoke" if flags.smoke else "results")
    left = []
    if not flags.report_only:
        place = Place(flags.data_dir, flags.embeddings, str(check_device(flags.device)))
        runs = [run for experiment in experiments for run in experiment.runs()]
        left = run_all(runs, folder, Crew(flags.jobs, place), console.print)
    records = Store(folder).records()
    for experiment in experiments:
        console.print(table_of(experiment, records, flags.smoke))
    if left:
        console.print(f"{len(left)} runs are not finished; the same command goes on with them")
    return UNFINISHED if left else 0


def check(flags: Reproduce) -> None:
    for name, value in (("--seeds", flags.seeds), ("--jobs", flags.jobs)):
        if value < 1:
            raise UsageError(f"{name} must be 1 or more, got {value}")
    if flags.data_dir is None and not flags.smoke and not flags.report_only:
        raise UsageError("--data-dir DIR: the folder with the sets; nothing is downloaded (--smoke does without)")


def make_plan(flags: Reproduce) -> Plan:
    seeds = min(flags.seeds, SMOKE_SEEDS) if flags.smoke else flags.seeds
    folder = flags.data_dir
    sets = frozenset(name for name in SOURCES if is_here(name, folder)) if folder else frozenset()
    return Plan(seeds, flags.smoke, flags.settings, vectors_name(flags.embeddings), sets)


def expand(targets: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for target in targets for name in (EXPERIMENTS if target == "all" else (target,))))


def find(target: str, plan: Plan) -> Experiment:
    if target in EXPERIMENTS:
        return EXPERIMENTS[target](plan)
    if target.endswith(".json"):
        return grid(Path(target), plan)
    names = ", ".join(["list", *EXPERIMENTS, "all"])
    raise UsageError(f"there is no {target!r} to reproduce; there are {names}, and files that end in .json")


def table_of(experiment: Experiment, records: Records, smoke: bool) -> Table:
    title = f"{'SMOKE RUN, NOT A RESULT: ' if smoke else ''}{experiment.title}"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_style="bold", pad_edge=False)
    for name in ("", "", "paper", "ours", "seeds"):
        table.add_column(name, justify="right" if name else "left")
    for summary in summarise(experiment, records):
        row = summary.row
        paper = f"{row.paper:.2f}" if row.paper is not None else ""
        table.add_row(row.group, row.label, paper, summary.shown(), str(len(summary.scores)))
    return table
