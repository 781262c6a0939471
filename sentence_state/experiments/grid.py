"""An experiment of one's own, without code: a JSON file that says which rows to run.

{"title": "What makes best better", "data": ["mr"], "split": "dev", "settings": "best", "against": "best",
 "rows": [{"label": "best"},
          {"label": "without step dropout", "model": {"step_dropout": 0.0}},
          {"label": "BiLSTM", "encoder": "BiLSTM", "settings": "paper", "training": {"word_rate": 0.1}}]}

"model" and "training" hold fields of ModelConfig and TrainingConfig, but for what the row or the command line says; at
the top they are for all rows. "seeds" there goes before --seeds.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..data.errors import DataError
from ..data.files import read_json
from ..encoders import ENCODERS
from ..models import ModelConfig
from ..training import TrainingConfig
from .experiment import Experiment, Plan, Row
from .runs import IRRELEVANT

AT_TOP = {
    "title": str, "data": (str, list), "split": str, "settings": str, "against": str, "seeds": int, "rows": list,
    "model": dict, "training": dict, "notes": list,
}  # fmt: skip
OF_ROW = {"label": str, "encoder": str, "settings": str, "model": dict, "training": dict}
OPTIONS = {
    "model": set(ModelConfig().to_dict()) - {"encoder"},
    "training": set(TrainingConfig().to_dict()) - {"seed", *IRRELEVANT},
}
KINDS = {str: "text", list: "a list", int: "a whole number", dict: "an object"}


def grid(path: Path, plan: Plan) -> Experiment:
    content = read_json(path)
    check(path, content, AT_TOP, needed=("data", "rows"))
    for row in content["rows"]:
        check(path, row, OF_ROW, needed=("label",))
        check_options(path, row, f"row {row['label']!r}: ")
    check_options(path, content, "")
    check_rows(path, content)
    split = content.get("split", "dev")
    if split not in ("dev", "test"):
        raise DataError.at(path, f'split must be "dev" or "test", got {split!r}')
    seeds = content.get("seeds", plan.seeds)
    plan = replace(plan, seeds=min(seeds, plan.seeds) if plan.smoke else seeds)
    sets = [content["data"]] if isinstance(content["data"], str) else content["data"]
    rows = tuple(make_row(path, content, row, data, plan, split == "test") for data in sets for row in content["rows"])
    title = content.get("title", path.stem)
    return Experiment(path.stem, title, split, rows, tuple(content.get("notes", ())), is_own=True)


def make_row(path: Path, content: dict[str, Any], row: dict[str, Any], data: str, plan: Plan, test: bool) -> Row:
    parts = (content.get("model"), content.get("training"), row.get("model"), row.get("training"))
    options = {name: value for part in parts for name, value in (part or {}).items()}
    settings = row.get("settings", content.get("settings", "paper"))
    try:
        runs = plan.runs(data, row.get("encoder", "S-LSTM"), settings, test, **options)
    except DataError as error:
        raise DataError.at(path, f"row {row['label']!r}: {error}") from None
    against = content.get("against")
    return Row(row["label"], runs, None, data, against if row["label"] != against else None, settings=settings)


def check(path: Path, content: Any, known: dict[str, Any], needed: tuple[str, ...]) -> None:
    if not isinstance(content, dict):
        raise DataError.at(path, f"expected an object with the fields {', '.join(sorted(known))}, got {content!r}")
    unknown, missing = content.keys() - known, set(needed) - content.keys()
    if unknown or missing:
        what = "unknown" if unknown else "missing"
        names = ", ".join(sorted(unknown or missing))
        raise DataError.at(path, f"{what}: {names}; the fields are {', '.join(sorted(known))}")
    for name, value in content.items():
        kinds = known[name] if isinstance(known[name], tuple) else (known[name],)
        if type(value) not in kinds:
            raise DataError.at(path, f"{name} must be {' or '.join(KINDS[kind] for kind in kinds)}, got {value!r}")


def check_options(path: Path, content: dict[str, Any], where: str) -> None:
    for name, known in OPTIONS.items():
        unknown = content.get(name, {}).keys() - known
        if unknown:
            names = f"{', '.join(sorted(unknown))}; the fields are {', '.join(sorted(known))}"
            raise DataError.at(path, f"{where}{name} has unknown fields: {names}")


def check_rows(path: Path, content: dict[str, Any]) -> None:
    labels = [row["label"] for row in content["rows"]]
    if not labels or len(set(labels)) < len(labels):
        raise DataError.at(path, f"rows must be one or more, each with a label of its own, got {labels}")
    if any("\n" in text for text in (content.get("title", ""), *labels)):
        raise DataError.at(path, "title and labels must be one line each")
    if content.get("against", labels[0]) not in labels:
        raise DataError.at(
            path, f"against must be the label of a row ({', '.join(labels)}), got {content['against']!r}"
        )
    for encoder in (row.get("encoder", "S-LSTM") for row in content["rows"]):
        if encoder not in ENCODERS:
            raise DataError.at(path, f"encoder must be of {', '.join(ENCODERS)}, got {encoder!r}")
    if content.get("seeds", 1) < 1:
        raise DataError.at(path, f"seeds must be 1 or more, got {content['seeds']}")
    if not content["data"] or not all(isinstance(name, str) for name in content["data"]):
        raise DataError.at(path, f"data must be the name of a set, or a list of names, got {content['data']!r}")
    if not all(isinstance(note, str) for note in content.get("notes", ())):
        raise DataError.at(path, f"notes must be a list of texts, got {content['notes']!r}")
