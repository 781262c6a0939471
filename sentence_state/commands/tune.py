"""sentence-state tune: the same search for every encoder, on dev."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ..data.benchmarks import OTHER_SPLITS, SOURCES
from ..encoders import ENCODERS
from ..experiments.experiment import Plan, slug
from ..experiments.material import Place
from ..experiments.store import Store
from ..experiments.tuning import Search, dev_of, home_of
from ..experiments.tuning import tune as search_settings
from ..experiments.workers import Crew, leave_group
from .console import make_console
from .flags import Tune, UsageError
from .load import check_device
from .reproduce import UNFINISHED, make_plan
from .sets import check_out, check_paths, say_what_is_unexpected


def tune(flags: Tune) -> int:
    check(flags)
    rank, local_rank = leave_group()
    console = make_console()
    plan = make_plan(flags.data_dir, flags.embeddings, flags.seeds, flags.smoke, (flags.settings,))
    folder = flags.out or Path("runs/smoke/tuned" if flags.smoke else "runs/tuned")
    crew = Crew(flags.jobs, Place(flags.data_dir, flags.embeddings, str(check_device(flags.device))), local_rank)
    search = Search(
        sets_of(flags.data),
        flags.encoders,
        flags.trials,
        flags.together,
        flags.seed,
        flags.settings,
        flags.prune,
        flags.finalists,
        flags.final_seeds,
    )
    home = folder / home_of(search, plan)
    say_what_is_unexpected([plan.data(name) for name in search.data], flags.data_dir, console)
    mark = "SMOKE RUN, NOT A RESULT: " if flags.smoke else ""
    found = search_settings(search, plan, folder, crew, console.print)
    complete = found.keys() == set(search.encoders)
    if rank:  # under torchrun, one process is enough to say it
        return 0 if complete else UNFINISHED
    for encoder, trial in found.items():
        chosen = ", ".join(f"{name} {value}" for name, value in trial.options.items())
        path = home / f"{slug(encoder)}.json"
        console.print(f"{mark}{encoder}: dev {dev_of(trial):.2f} in trial {trial.number}: {chosen} -> {path}")
    for encoder in search.encoders:
        if encoder not in found:
            console.print(f"{mark}{encoder}: no trial finished{last_error(search, plan, encoder, folder)}")
    return 0 if complete else UNFINISHED


def last_error(search: Search, plan: Plan, encoder: str, folder: Path) -> str:
    """Of a run of this encoder on these sets, where any failed."""
    sets = {plan.data(name).name for name in search.data}
    errors = [
        record["error"]
        for record in Store(folder).records().values()
        if "error" in record and record["run"]["model"]["encoder"] == encoder and record["run"]["data"]["name"] in sets
    ]
    return f"; the last error: {errors[-1]}" if errors else ""


def sets_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """fdu stands for the 16 sets."""
    groups = [[one for one in SOURCES if one.startswith("fdu/")] if name == "fdu" else [name] for name in names]
    return tuple(dict.fromkeys(name for group in groups for name in group))


def check(flags: Tune) -> None:
    if not flags.data:
        names = ", ".join(name for name in SOURCES if name not in OTHER_SPLITS)
        raise UsageError(f"on what is to be tuned? {names} or fdu")
    if find_spec("optuna") is None:
        raise UsageError('tune needs Optuna: pip install "sentence-state[experiments]"')
    for name in ("trials", "together", "seeds", "finalists", "final_seeds", "jobs"):
        least = 0 if name == "finalists" else 1
        if getattr(flags, name) < least:
            raise UsageError(f"--{name.replace('_', '-')} must be {least} or more, got {getattr(flags, name)}")
    for encoder in flags.encoders:
        if encoder not in ENCODERS:
            raise UsageError(f"--encoders must be of {', '.join(ENCODERS)}, got {encoder!r}")
    if flags.data_dir is None and not flags.smoke:
        raise UsageError("--data-dir DIR: the folder with the set; nothing is downloaded (--smoke does without)")
    check_paths(flags.data_dir, [flags.embeddings] if flags.embeddings else [])
    check_out(flags.out)
