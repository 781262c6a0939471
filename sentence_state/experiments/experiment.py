"""What a table or figure is made of: rows of runs, each with the number that the paper prints."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ..data.description import check_fields
from ..data.errors import DataError
from ..data.files import read_json
from ..models import ModelConfig
from ..training import PRESETS, TrainingConfig, preset
from .material import Data
from .measurements import Measurement
from .paper_results import Developed, Timed
from .runs import Run

SMOKE_LIMIT = 48
SMOKE_DIVISOR = 25  # of hidden sizes: 300 becomes 12
SMOKE_STEPS = 3
PRESET = "a preset"


@dataclass(frozen=True)
class Row:
    """A line of a table, a point of a figure: the same runs with several seeds.

    paper: what the paper prints, in percent. against: the row (of the same group) that it is compared with.
    """

    label: str
    runs: tuple[Run, ...]
    paper: float | None = None
    group: str = ""
    against: str | None = None
    paper_times: tuple[float, float | None] | None = None  # seconds of training an epoch, and of the test
    paper_parameters: int | None = None  # thousands
    panel: str = ""  # of a figure; there, a group is a curve
    settings: str = "paper"  # the preset or folder


@dataclass(frozen=True)
class Experiment:
    """A table or figure. `split` is where its scores are read: "dev" or "test"."""

    name: str
    title: str
    split: Literal["dev", "test"]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    times: Measurement | None = None
    timed: tuple[Row, ...] = ()  # rows of the table of times, where they are not those of the scores; same labels
    unit: str = "model"  # what a row is
    others: Mapping[str, float] = field(default_factory=dict)  # systems that only the paper has scores of, in percent
    is_own: bool = False  # of a file of rows, not of the paper

    def runs(self) -> list[Run]:
        return [run for row in self.rows for run in row.runs]


@dataclass(frozen=True)
class Plan:
    """What the user asked for.

    settings: "paper", another preset, or a folder of tuned settings; a table has its rows once for each.
    sets: the names of the sets that can be read; empty for smoke runs on the embedded sample.
    """

    seeds: int = 5
    smoke: bool = False
    settings: tuple[str, ...] = ("paper",)
    vectors: str = "none"
    sets: frozenset[str] = field(default_factory=frozenset)

    def data(self, name: str) -> Data:
        """The set; in smoke runs a slice of it, or of the embedded sample where there is no data folder."""
        if not self.smoke:
            return Data(name)
        if self.sets:
            return Data(name, limit=SMOKE_LIMIT)
        task = Data(name).task
        return Data("sample/label" if task == "classification" else "sample/tags", limit=SMOKE_LIMIT)

    def runs(self, name: str, encoder: str, settings: str, test: bool, **options: Any) -> tuple[Run, ...]:
        """One run a seed. `options` are fields of ModelConfig or TrainingConfig that differ from the settings."""
        data = self.data(name)
        model, training = configure(settings, encoder, name, self.smoke)
        model, training = override(model, training, options)
        if self.smoke:
            model, training = shrink(model, training)
        return tuple(Run(data, model, replace(training, seed=seed), self.vectors, test) for seed in range(self.seeds))

    def model(self, encoder: str, name: str) -> ModelConfig:
        """As the first settings have it for this set, for times and memory."""
        model, training = configure(self.settings[0], encoder, name, self.smoke)
        return shrink(model, training)[0] if self.smoke else model

    def precision(self, name: str) -> Literal["float32", "bfloat16"]:
        """In which the first settings train on this set."""
        return configure(self.settings[0], "S-LSTM", name, self.smoke)[1].precision

    def quick(self, measurement: Measurement) -> Measurement:
        return replace(measurement, batches=2, rounds=1) if self.smoke else measurement

    def times(self, names: Sequence[str], rows: Sequence[Row]) -> Measurement:
        """The models of these rows in turns on these sets, in the precision that the settings train in."""
        models = {row.label: row.runs[0].model for row in rows}
        sets = dict.fromkeys(self.data(name) for name in names)
        precision = rows[0].runs[0].training.precision
        return self.quick(Measurement("time", tuple(sets), tuple(models.items()), precision=precision))


def configure(settings: str, encoder: str, name: str, smoke: bool = False) -> tuple[ModelConfig, TrainingConfig]:
    """A preset with this encoder, or what a folder has for it: see `tuned_path`. What a smoke search chose is for smoke
    runs only."""
    if settings in PRESETS:
        model, training = preset(settings, "classifier" if Data(name).task == "classification" else "tagger")
        return replace(model, encoder=encoder), training
    path = tuned_path(settings, encoder, name)
    if not Path(settings).is_dir():
        names = ", ".join(PRESETS)
        raise DataError.at(settings, f"neither a preset ({names}) nor a folder of tuned settings")
    content = read_json(path)
    if not isinstance(content, dict):
        raise DataError.at(path, "expected an object with the fields model and training")
    if content.get("smoke") and not smoke:
        raise DataError.at(path, "chosen by a smoke search (tune --smoke), and good for smoke runs only")
    try:
        options = {**content["model"], **content["training"]}
        return override(ModelConfig(encoder=encoder), TrainingConfig(), options)
    except (KeyError, TypeError) as error:
        raise DataError.at(path, f"expected the fields model and training ({error})") from None


def has_settings(settings: str, encoder: str, name: str) -> bool:
    """False where a folder of tuned settings has none for this encoder."""
    return not Path(settings).is_dir() or settings in PRESETS or tuned_path(settings, encoder, name).is_file()


def tuned_path(settings: str, encoder: str, name: str) -> Path:
    """<folder>/<set>/<encoder>.json, or the one of its group (fdu), or of its task (classification, tagging)."""
    places = (name, name.partition("/")[0], Data(name).task)
    paths = [Path(settings) / place / f"{slug(encoder)}.json" for place in places]
    return next((path for path in paths if path.is_file()), paths[-1])


def origin_of(row: Row) -> str:
    """How its settings were chosen, as far as their file says."""
    if row.settings in PRESETS:
        return PRESET
    path = tuned_path(row.settings, row.runs[0].model.encoder, row.runs[0].data.name)
    content = read_json(path) if path.is_file() else {}
    return str(content.get("note", searched(content) if "trials" in content else "not said"))


def searched(content: Mapping[str, Any]) -> str:
    found = f"the best of {content['trials']} trials on dev"
    if content.get("finalists"):
        seeds = f"by the mean of {content['seeds']} seeds on dev"
        found = f"the best of {content['finalists']} finalists {seeds}, after {content['trials']} trials"
    return found + (f", drawn in the search of {content['taken_from']}" if content.get("taken_from") else "")


def override(
    model: ModelConfig, training: TrainingConfig, options: dict[str, Any]
) -> tuple[ModelConfig, TrainingConfig]:
    """Both configs with some fields changed, each of the type it has."""
    of_model = {name: value for name, value in options.items() if name in model.to_dict()}
    of_training = {name: value for name, value in options.items() if name not in of_model}
    try:
        check_fields(ModelConfig, {**model.to_dict(), **of_model})
        check_fields(TrainingConfig, {**training.to_dict(), **of_training})
        return replace(model, **of_model), replace(training, **of_training)
    except ValueError as error:
        raise DataError.at("settings", str(error)) from None


def shrink(model: ModelConfig, training: TrainingConfig) -> tuple[ModelConfig, TrainingConfig]:
    """So small that a run takes a second: it shows that everything works and says nothing about accuracy."""
    small = replace(
        model,
        hidden_size=max(4, model.hidden_size // SMOKE_DIVISOR),
        word_size=12,
        num_steps=min(model.num_steps, SMOKE_STEPS),
        character_size=4,
        character_hidden_size=4,
    )
    return small, replace(training, epochs=1, batch_size=16)


def slug(name: str) -> str:
    """2 stacked BiLSTM -> 2-stacked-bilstm"""
    kept = "".join(letter if letter.isalnum() else " " for letter in name.lower())
    return "-".join(kept.split())


def name_of(settings: str) -> str:
    """What a table calls them: a preset, or the last part of a folder, of the working directory too."""
    return settings if settings in PRESETS else Path(os.path.abspath(settings)).name


def labelled(label: str, settings: str, plan: Plan) -> str:
    """With the name of the settings where a table has more than one."""
    return label if len(plan.settings) == 1 else f"{label} ({name_of(settings)})"


def printed_row(
    label: str,
    runs: tuple[Run, ...],
    printed: Timed | Developed | None,
    settings: str,
    group: str = "",
    against: str | None = None,
) -> Row:
    """A row with all that the paper prints about it."""
    row = Row(label, runs, None, group, against, settings=settings)
    if printed is None:
        return row
    if isinstance(printed, Timed):
        return replace(row, paper=printed.score, paper_times=(printed.train, printed.test))
    return replace(row, paper=printed.score, paper_times=(printed.train, None), paper_parameters=printed.parameters)


def rows_of_encoders(
    plan: Plan,
    data: str,
    paper: Mapping[str, Timed | Developed | None],
    *,
    test: bool,
    against: str,
    group: str = "",
    paper_steps: int | None = None,
) -> tuple[Row, ...]:
    """A row for each encoder and settings, without encoders that were not tuned where some were. paper_steps: where the
    paper's number of steps is not its usual one."""
    rows = []
    for settings in plan.settings:
        baseline = labelled(against, settings, plan)
        tuned = {encoder: printed for encoder, printed in paper.items() if has_settings(settings, encoder, data)}
        for encoder, printed in (tuned or paper).items():
            label = labelled(encoder, settings, plan)
            own_steps = settings == "paper" and encoder == "S-LSTM" and paper_steps
            options = {"num_steps": paper_steps} if own_steps else {}
            runs = plan.runs(data, encoder, settings, test, **options)
            rows.append(printed_row(label, runs, printed, settings, group, baseline if label != baseline else None))
    return tuple(rows)


def without_rows(paper: Mapping[str, Timed | Developed], rows: Sequence[Row]) -> dict[str, float]:
    """The paper's scores of encoders that have no row, for there are no settings for them."""
    there = {row.runs[0].model.encoder for row in rows}
    return {encoder: printed.score for encoder, printed in paper.items() if encoder not in there}
