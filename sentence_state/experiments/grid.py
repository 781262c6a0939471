"""An experiment of one's own, without code: a JSON file that says which rows to run.

{"title": "What makes best better", "data": ["mr"], "split": "dev", "settings": "best", "against": "best",
 "rows": [{"label": "best"},
          {"label": "without step dropout", "model": {"step_dropout": 0.0}},
          {"label": "BiLSTM", "encoder": "BiLSTM", "settings": "paper", "training": {"word_rate": 0.1}}]}

"model" and "training" hold fields of ModelConfig and TrainingConfig; at the top they are for all rows. "seeds" there
goes before --seeds.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..data.errors import DataError
from ..models.files import read_json
from .experiment import Experiment, Plan, Row

AT_TOP = {"title", "data", "split", "settings", "against", "seeds", "rows", "model", "training", "notes"}
OF_ROW = {"label", "encoder", "settings", "model", "training"}


def grid(path: Path, plan: Plan) -> Experiment:
    content = read_json(path)
    check(path, content, AT_TOP, needed=("data", "rows"))
    for row in content["rows"]:
        check(path, row, OF_ROW, needed=("label",))
    split = content.get("split", "dev")
    if split not in ("dev", "test"):
        raise DataError.at(path, f'split must be "dev" or "test", got {split!r}')
    seeds = content.get("seeds", plan.seeds)
    plan = replace(plan, seeds=min(seeds, plan.seeds) if plan.smoke else seeds)
    sets = [content["data"]] if isinstance(content["data"], str) else content["data"]
    rows = tuple(make_row(content, row, data, plan, split == "test") for data in sets for row in content["rows"])
    title = content.get("title", path.stem)
    return Experiment(path.stem, title, split, rows, tuple(content.get("notes", ())))


def make_row(content: dict[str, Any], row: dict[str, Any], data: str, plan: Plan, test: bool) -> Row:
    parts = (content.get("model"), content.get("training"), row.get("model"), row.get("training"))
    options = {name: value for part in parts for name, value in (part or {}).items()}
    settings = row.get("settings", content.get("settings", "paper"))
    runs = plan.runs(data, row.get("encoder", "S-LSTM"), settings, test, **options)
    against = content.get("against")
    return Row(row["label"], runs, None, data, against if row["label"] != against else None)


def check(path: Path, content: Any, known: set[str], needed: tuple[str, ...]) -> None:
    if not isinstance(content, dict):
        raise DataError.at(path, f"expected an object with the fields {', '.join(sorted(known))}, got {content!r}")
    unknown, missing = content.keys() - known, set(needed) - content.keys()
    if unknown or missing:
        what = "unknown" if unknown else "missing"
        names = ", ".join(sorted(unknown or missing))
        raise DataError.at(path, f"{what}: {names}; the fields are {', '.join(sorted(known))}")
