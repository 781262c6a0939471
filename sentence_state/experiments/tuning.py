"""Fair tuning: the same search space and the same number of trials for every encoder, on dev only (Optuna, an extra).

A trial is a run like any other: kept as a line, never repeated. The sampler is seeded and asked for a fixed number of
trials at once, so that a killed search, begun again, asks for the same trials and finds them finished.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..models.files import write_json, write_text
from .experiment import Plan, slug
from .runs import Run, changed
from .store import Store
from .summaries import Records, finished
from .workers import Crew, Say, run_all

SPACE: dict[str, Sequence[Any]] = {  # fields of ModelConfig and TrainingConfig -> values, in order where they have one
    "learning_rate": (0.0003, 0.0005, 0.001, 0.002, 0.003),
    "word_rate": (0.03, 0.1, 0.3, 1.0),
    "decay": (0.9, 0.97),
    "batch_size": (10, 32, 64),
    "dropout": (0.2, 0.3, 0.4, 0.5, 0.6),
    "output_dropout": (0.0, 0.2, 0.4),
    "hidden_size": (200, 300, 400),
    "averaging": (0.0, 0.99, 0.999),
    "l2": (0.0, 0.00001, 0.001),
}
OF_CLASSIFICATION: dict[str, Sequence[Any]] = {"readout": ("sentence", "attention", "max")}


@dataclass(frozen=True)
class Search:
    """What is tuned on what. together: trials that are asked for at once, for each encoder."""

    data: str
    encoders: tuple[str, ...]
    trials: int = 30
    together: int = 6
    seed: int = 0
    settings: str = "paper"


@dataclass(frozen=True)
class Trial:
    encoder: str
    number: int
    options: dict[str, Any]
    runs: tuple[Run, ...]
    score: float | None  # mean dev score over seeds, in percent; None where a run failed

    def line(self) -> dict[str, Any]:
        keys = [run.key() for run in self.runs]
        return {"encoder": self.encoder, "trial": self.number, "dev": self.score, "options": self.options, "runs": keys}


def space_of(task: str) -> dict[str, Sequence[Any]]:
    return {**SPACE, **OF_CLASSIFICATION} if task == "classification" else SPACE


def tune(search: Search, plan: Plan, folder: Path, crew: Crew, say: Say = print) -> dict[str, Trial]:
    """The best trial of each encoder. Writes <folder>/<task>/<encoder>.json and <folder>/<task>/trials.jsonl."""
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    task = plan.data(search.data).task
    distributions: dict[str, BaseDistribution] = {
        name: CategoricalDistribution(list(values)) for name, values in space_of(task).items()
    }
    studies = {
        encoder: optuna.create_study(direction="maximize", sampler=sampler(search)) for encoder in search.encoders
    }
    done: list[Trial] = []
    while len(done) < search.trials * len(studies):
        number = min(search.together, search.trials - len(done) // len(studies))
        asked = [(study.ask(distributions), encoder) for encoder, study in studies.items() for _ in range(number)]
        trials = [make_trial(search, plan, encoder, one.number, dict(one.params)) for one, encoder in asked]
        run_all([run for trial in trials for run in trial.runs], folder, crew, say)
        records = Store(folder).records()
        for (one, encoder), trial in zip(asked, trials, strict=True):
            trial = replace(trial, score=score_of(trial, records))
            failed = optuna.trial.TrialState.FAIL if trial.score is None else None
            studies[encoder].tell(one, trial.score, state=failed)
            done.append(trial)
        keep(search, task, folder, done)
    return best_of(done)


def sampler(search: Search) -> Any:
    from optuna.samplers import TPESampler

    return TPESampler(seed=search.seed, n_startup_trials=max(4, search.trials // 3), constant_liar=True)


def make_trial(search: Search, plan: Plan, encoder: str, number: int, options: dict[str, Any]) -> Trial:
    runs = plan.runs(search.data, encoder, search.settings, False, **options)
    return Trial(encoder, number, options, runs, None)


def score_of(trial: Trial, records: Records) -> float | None:
    found = [finished(run, records) for run in trial.runs]
    return float(np.mean([100 * record["dev"]["score"] for record in found if record])) if all(found) else None


def best_of(trials: Sequence[Trial]) -> dict[str, Trial]:
    """The best finished trial of each encoder, the earlier one of two that are equal."""
    best: dict[str, Trial] = {}
    for trial in trials:
        other = best.get(trial.encoder)
        if trial.score is not None and (other is None or other.score is None or trial.score > other.score):
            best[trial.encoder] = trial
    return best


def keep(search: Search, task: str, folder: Path, trials: Sequence[Trial]) -> None:
    """The log of all trials so far, and the best settings so far of each encoder."""
    (folder / task).mkdir(parents=True, exist_ok=True)
    ordered = sorted(trials, key=lambda trial: (search.encoders.index(trial.encoder), trial.number))
    lines = [json.dumps(trial.line(), ensure_ascii=False) for trial in ordered]
    write_text(folder / task / "trials.jsonl", "\n".join(lines) + "\n")
    for encoder, trial in best_of(trials).items():
        write_json(folder / task / f"{slug(encoder)}.json", chosen(search, task, trial, trials))


def chosen(search: Search, task: str, trial: Trial, trials: Sequence[Trial]) -> Mapping[str, Any]:
    """What `--settings` reads, with how it was found."""
    run = trial.runs[0]
    return {
        "encoder": trial.encoder,
        "data": search.data,
        "dev": trial.score,
        "trials": sum(one.encoder == trial.encoder for one in trials),
        "seeds": len(trial.runs),
        "vectors": run.vectors,
        "smoke": run.smoke,
        "settings": search.settings,
        "space": {name: list(values) for name, values in space_of(task).items()},
        "model": {name: value for name, value in changed(run.model).items() if name != "encoder"},
        "training": {name: value for name, value in changed(run.training).items() if name != "seed"},
    }
