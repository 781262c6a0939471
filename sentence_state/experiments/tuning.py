"""Fair tuning: the same search space and the same number of trials for every encoder, on dev only (Optuna, an extra).

A trial consists of runs like any others, kept as lines, never repeated: one a set and seed, where several sets share
their settings. The sampler is seeded and asked for a fixed number of trials at once, so that a killed search, begun
again, asks for the same trials and finds them finished; with more trials it goes on from there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data.errors import DataError
from ..data.files import read_json, write_json, write_text
from ..training import TrainingConfig
from .experiment import Plan, configure, slug
from .runs import Run, changed
from .store import Store
from .summaries import Records, finished
from .workers import Crew, Say, run_all

# Fields of ModelConfig and TrainingConfig -> values. Left out after the first searches, where no good
# trial of either encoder had them: learning rates of 0.0003 and 0.003, word vectors at 0.3 of the rate and more, L2,
# the sentence vector alone; and for taggers batches of 10, for their time. Encoders without steps ignore theirs.
SPACE: dict[str, Sequence[Any]] = {
    "learning_rate": (0.0005, 0.001, 0.002),
    "word_rate": (0.03, 0.1),
    "decay": (0.9, 0.95),
    "batch_size": (16, 32, 64),
    "dropout": (0.2, 0.3, 0.4, 0.5, 0.6),
    "word_dropout": (0.0, 0.05),
    "step_dropout": (0.1, 0.3),
    "output_dropout": (0.0, 0.2, 0.4),
    "hidden_size": (200, 300, 400),
    "num_steps": (5, 7, 9),
    "averaging": (0.0, 0.99, 0.999),
}
OF_TASKS: dict[str, dict[str, Sequence[Any]]] = {
    "classification": {
        "batch_size": (10, 16, 32, 64),
        "readout": ("attention", "max"),
        "consistency": (0.0, 0.5, 1.0, 2.0),
    },
    "tagging": {"consistency": (0.0, 0.5, 1.0)},
}
LOG = "trials.jsonl"  # beside the settings, a line a trial
RANDOM_TRIALS = 5  # before the sampler learns; does not depend on the number of trials, so that a search can go on


@dataclass(frozen=True)
class Search:
    """What is tuned on what. data: sets that get the same settings. together: trials that are asked for at once, for
    each encoder. prune: of these, only the better half by a first look is run to the end. finalists: so many of the
    best options of each encoder are run for all encoders with `final_seeds` seeds, and the mean over these decides: of
    many trials with one seed each, the best is lucky, and a sampler may never have asked for what another found."""

    data: tuple[str, ...]
    encoders: tuple[str, ...]
    trials: int = 30
    together: int = 6
    seed: int = 0
    settings: str = "paper"
    prune: bool = False
    finalists: int = 0
    final_seeds: int = 5


@dataclass(frozen=True)
class Trial:
    encoder: str
    number: int
    options: dict[str, Any]
    runs: tuple[Run, ...]
    score: float | None = None  # mean dev score over sets and seeds, in percent; None where a run failed or was pruned
    look: float | None = None  # the same of the first look, where there was one
    final: float | None = None  # the same of a finalist with all its seeds; then `runs` are these
    taken_from: str | None = None  # the encoder whose trial found these options, where it is another one

    def line(self) -> dict[str, Any]:
        scores: dict[str, Any] = {"dev": self.score}
        scores |= {"first_look": self.look} if self.look is not None else {}
        scores |= {"final": self.final} if self.final is not None else {}
        scores |= {"taken_from": self.taken_from} if self.taken_from is not None else {}
        keys = [run.key() for run in self.runs]
        return {"encoder": self.encoder, "trial": self.number, **scores, "options": self.options, "runs": keys}

    def first_look(self) -> list[Run]:
        """A quarter of the work: a quarter of the sets where there are several, else of the epochs."""
        sets = list(dict.fromkeys(run.data for run in self.runs))
        if len(sets) > 1:
            seen = sets[: math.ceil(len(sets) / 4)]
            return [run for run in self.runs if run.data in seen]
        return [replace(run, training=shortened(run.training)) for run in self.runs]


def shortened(training: TrainingConfig) -> TrainingConfig:
    return replace(training, epochs=math.ceil(training.epochs / 4))


def space_of(task: str) -> dict[str, Sequence[Any]]:
    return {**SPACE, **OF_TASKS[task]}


def tune(search: Search, plan: Plan, folder: Path, crew: Crew, say: Say = print) -> dict[str, Trial]:
    """The best trial of each encoder. Writes <folder>/<set>/<encoder>.json and <folder>/<set>/trials.jsonl."""
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    task = task_of(search, plan)
    home = folder / home_of(search, plan)
    check_same_search(search, plan, home)
    check_no_less(search, plan, home)
    least = least_trials(search, plan, home)
    distributions: dict[str, BaseDistribution] = {
        name: CategoricalDistribution(list(values)) for name, values in space_of(task).items()
    }
    studies = {
        encoder: optuna.create_study(direction="maximize", sampler=sampler(search)) for encoder in search.encoders
    }
    for encoder, study in studies.items():
        study.enqueue_trial(starting_point(search, encoder, task))
    done: list[Trial] = []
    while len(done) < search.trials * len(studies):
        number = min(search.together, search.trials - len(done) // len(studies))
        asked = [(study.ask(distributions), encoder) for encoder, study in studies.items() for _ in range(number)]
        trials = [make_trial(search, plan, encoder, one.number, dict(one.params)) for one, encoder in asked]
        trials = run_trials(trials, search.prune, folder, crew, say)
        for (one, encoder), trial in zip(asked, trials, strict=True):
            tell(studies[encoder], one, trial)
        done += trials
        if len(done) >= least * len(studies):
            keep(search, task, folder, home, done)
    if search.finalists:
        done = run_finalists(search, plan, done, folder, crew, say)
        keep(search, task, folder, home, done)
    return best_of(done)


def starting_point(search: Search, encoder: str, task: str) -> dict[str, Any]:
    """The first trial: the settings that the search starts from, as far as the space has their values."""
    model, training = configure(search.settings, encoder, search.data[0])
    options = {**model.to_dict(), **training.to_dict()}
    return {name: options[name] for name, values in space_of(task).items() if options[name] in values}


def task_of(search: Search, plan: Plan) -> str:
    tasks = {name: plan.data(name).task for name in search.data}
    if len(set(tasks.values())) > 1:
        listed = ", ".join(f"{name} ({task})" for name, task in tasks.items())
        raise DataError.at(search.data[0], f"sets that are tuned together must be of one task, got {listed}")
    return tasks[search.data[0]]


def home_of(search: Search, plan: Plan) -> str:
    """The folder in which `configure` looks for settings of these sets."""
    if len(search.data) == 1:
        return search.data[0]
    return "fdu" if all(name.startswith("fdu/") for name in search.data) else task_of(search, plan)


def check_same_search(search: Search, plan: Plan, home: Path) -> None:
    """What was chosen on other sets, with other vectors or from other settings, is not written over."""
    asked = {"smoke": plan.smoke, "vectors": plan.vectors, "settings": search.settings}
    for _, path, before in choices_before(search, home):
        if "trials" not in before:
            raise DataError.at(path, "these settings were written by hand, not by a search; --out names another folder")
        if (data := as_tuple(before["data"])) != search.data:
            names = ", ".join(map(str, data))
            raise DataError.at(path, f"these settings were chosen on {names}; --out names a folder for others")
        for name, value in asked.items():
            if before.get(name) != value:
                had = f"these settings were chosen with {name} {before.get(name)}, got {name} {value}"
                raise DataError.at(path, f"{had}; --out names a folder for others")


def check_no_less(search: Search, plan: Plan, home: Path) -> None:
    """The best of more trials, finalists or seeds is not written over by that of fewer, nor is their log."""
    seeds = max(plan.seeds, search.final_seeds) if search.finalists else plan.seeds
    of_seeds = "--final-seeds" if search.finalists else "--seeds"
    for encoder, path, before in choices_before(search, home):
        trials = trials_before(encoder, home)
        finalists = math.ceil(before.get("finalists", 0) / len(search.encoders))  # each was given those of all
        for what, flag, had, asked in (
            (f"of {trials} trials", "--trials", trials, search.trials),
            (f"of {finalists} finalists of each encoder", "--finalists", finalists, search.finalists),
            (f"by {before.get('seeds', 1)} seeds", of_seeds, before.get("seeds", 1), seeds),
        ):
            if had > asked:
                raise DataError.at(
                    path,
                    f"these settings are the best {what}, got {flag} {asked}; {flag} {had} or more goes on with that "
                    "search, --out names a folder for another",
                )


def least_trials(search: Search, plan: Plan, home: Path) -> float:
    """So many of each encoder are run before the best of them can take the place of what is there; no number is enough
    where finalists were run, or more seeds."""
    found = choices_before(search, home)
    if any(before.get("finalists", 0) or before.get("seeds", 1) > plan.seeds for _, _, before in found):
        return math.inf
    return max((trials_before(encoder, home) for encoder, _, _ in found), default=0)


def choices_before(search: Search, home: Path) -> list[tuple[str, Path, dict[str, Any]]]:
    """Encoder, file and content, where the folder has settings already."""
    paths = {encoder: home / f"{slug(encoder)}.json" for encoder in search.encoders}
    return [(encoder, path, read_json(path)) for encoder, path in paths.items() if path.exists()]


def trials_before(encoder: str, home: Path) -> int:
    """Of its own: finalists that it took from another encoder came on top."""
    return sum(trial["encoder"] == encoder and "taken_from" not in trial for trial in read_log(home))


def read_log(home: Path) -> list[dict[str, Any]]:
    path = home / LOG
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def as_tuple(names: Any) -> tuple[Any, ...]:
    return tuple(names) if isinstance(names, list) else (names,)


def run_trials(trials: Sequence[Trial], prune: bool, folder: Path, crew: Crew, say: Say) -> list[Trial]:
    """All of them, or after a first look at all the better half of each encoder's."""
    store = Store(folder)
    going_on = list(trials)
    if prune:
        run_all([run for trial in trials for run in trial.first_look()], folder, crew, say)
        records = store.records()
        trials = [replace(trial, look=score_of(trial.first_look(), records)) for trial in trials]
        going_on = better_half(trials)
    run_all([run for trial in going_on for run in trial.runs], folder, crew, say)
    records = store.records()
    return [replace(trial, score=score_of(trial.runs, records)) if trial in going_on else trial for trial in trials]


def better_half(trials: Sequence[Trial]) -> list[Trial]:
    """By the first look, of each encoder; half of an odd number is rounded up, the earlier of two equal ones stays."""
    kept = []
    for encoder in dict.fromkeys(trial.encoder for trial in trials):
        own = [trial for trial in trials if trial.encoder == encoder]
        finished_looks = [trial for trial in own if trial.look is not None]
        kept += sorted(finished_looks, key=lambda trial: -(trial.look or 0.0))[: math.ceil(len(own) / 2)]
    return kept


def run_finalists(
    search: Search, plan: Plan, trials: Sequence[Trial], folder: Path, crew: Crew, say: Say
) -> list[Trial]:
    """All trials, and the best of each encoder once more for every encoder and with more seeds."""
    trials, best = list(trials), []
    for encoder in search.encoders:
        own = [trial for trial in trials if trial.encoder == encoder and trial.score is not None]
        best += sorted(own, key=lambda trial: -(trial.score or 0.0))[: search.finalists]
    for encoder in search.encoders:
        for one in best:
            own = [trial for trial in trials if trial.encoder == encoder]
            if all(trial.options != one.options for trial in own):
                taken = make_trial(search, plan, encoder, len(own), one.options)
                trials.append(replace(taken, taken_from=one.encoder))
    plan = replace(plan, seeds=max(plan.seeds, search.final_seeds))
    in_final = [trial for trial in trials if any(trial.options == one.options for one in best)]
    more = {id(one): make_trial(search, plan, one.encoder, one.number, one.options).runs for one in in_final}
    run_all([run for runs in more.values() for run in runs], folder, crew, say)
    records = Store(folder).records()
    for place, trial in enumerate(trials):
        if runs := more.get(id(trial)):
            score, final = score_of(trial.runs, records), score_of(runs, records)
            trials[place] = replace(trial, runs=runs, score=score, final=final)
    return trials


def tell(study: Any, asked: Any, trial: Trial) -> None:
    """The sampler learns from what was pruned too."""
    from optuna.trial import TrialState

    if trial.score is not None:
        study.tell(asked, trial.score)
    elif trial.look is not None:
        asked.report(trial.look, step=0)
        study.tell(asked, state=TrialState.PRUNED)
    else:
        study.tell(asked, state=TrialState.FAIL)


def sampler(search: Search) -> Any:
    from optuna.samplers import TPESampler

    return TPESampler(seed=search.seed, n_startup_trials=RANDOM_TRIALS, constant_liar=True)


def make_trial(search: Search, plan: Plan, encoder: str, number: int, options: dict[str, Any]) -> Trial:
    sets = [plan.runs(name, encoder, search.settings, False, **options) for name in search.data]
    return Trial(encoder, number, options, tuple(run for runs in sets for run in runs))


def score_of(runs: Sequence[Run], records: Records) -> float | None:
    found = [finished(run, records) for run in runs]
    return float(np.mean([100 * record["dev"]["score"] for record in found if record])) if all(found) else None


def best_of(trials: Sequence[Trial]) -> dict[str, Trial]:
    """The best finished trial of each encoder, of its finalists where it has any; the earlier of two that are equal."""
    best: dict[str, Trial] = {}
    for encoder in dict.fromkeys(trial.encoder for trial in trials):
        own = [trial for trial in trials if trial.encoder == encoder and trial.score is not None]
        own = [trial for trial in own if trial.final is not None] or own
        if own:
            best[encoder] = max(own, key=dev_of)  # the first of them
    return best


def dev_of(trial: Trial) -> float:
    found = trial.score if trial.final is None else trial.final
    return -math.inf if found is None else found


def keep(search: Search, task: str, folder: Path, home: Path, trials: Sequence[Trial]) -> None:
    """The log of all trials so far, those of other encoders before them, and the best settings so far of each."""
    home.mkdir(parents=True, exist_ok=True)
    ordered = sorted(trials, key=lambda trial: (search.encoders.index(trial.encoder), trial.number))
    with Store(folder).lock():  # others who share the work come to the same point at the same time
        others = [line for line in read_log(home) if line["encoder"] not in search.encoders]
        lines = [json.dumps(line, ensure_ascii=False) for line in (*others, *(trial.line() for trial in ordered))]
        write_text(home / LOG, "\n".join(lines) + "\n")
        for encoder, trial in best_of(trials).items():
            write_json(home / f"{slug(encoder)}.json", chosen(search, task, trial, trials))


def chosen(search: Search, task: str, trial: Trial, trials: Sequence[Trial]) -> Mapping[str, Any]:
    """What `--settings` reads, with how it was found."""
    run = trial.runs[0]
    own = [one for one in trials if one.encoder == trial.encoder]
    asked = [one for one in own if one.taken_from is None]
    return {
        "encoder": trial.encoder,
        "data": search.data[0] if len(search.data) == 1 else list(search.data),
        "dev": dev_of(trial),
        "trials": len(asked),
        "pruned": sum(one.score is None for one in asked),
        "finalists": len({one.runs for one in own if one.final is not None}),  # one that was asked for twice is one
        "taken_from": trial.taken_from,
        "seeds": len(trial.runs) // len(search.data),
        "vectors": run.vectors,
        "smoke": run.smoke,
        "settings": search.settings,
        "space": {name: list(values) for name, values in space_of(task).items()},
        "model": {name: value for name, value in changed(run.model).items() if name != "encoder"},
        "training": {name: value for name, value in changed(run.training).items() if name != "seed"},
    }
