"""Measured beside printed: everything that is finished, as a report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .catalogue import Target
from .document import Report
from .summaries import Records, variants


def make_report(targets: Sequence[Target], records: Records, smoke: bool) -> Report:
    """Sections of the targets of which anything is finished."""
    begun = [target for target in targets if used(target, records)]
    lines = [record for target in begun for record in used(target, records)]
    return Report(facts(lines), [target.section(records) for target in begun], smoke)


def used(target: Target, records: Records) -> list[dict[str, Any]]:
    keys = [run.key() for run in target.runs]
    keys += [variant.key() for measurement in target.measurements for variant in variants(measurement)]
    return [records[key] for key in dict.fromkeys(keys) if key in records and "error" not in records[key]]


def facts(lines: Sequence[dict[str, Any]]) -> list[str]:
    """What all numbers have in common, or do not."""
    unique = {line["key"]: line for line in lines}.values()
    trained = [line for line in unique if line["kind"] == "training"]
    hours = sum(line["seconds"] for line in trained) / 3600
    found = [f"{len(trained)} training runs, {hours:.1f} hours in all; a line each in runs.jsonl"]
    found.append(f"hardware: {listed(line['hardware'] for line in unique)}")
    found.append(f"torch {listed(line['versions']['torch'] for line in unique)}; commit {listed(commits(unique))}")
    if any(line["run"]["data"]["name"].startswith("sample/") for line in trained):
        found.append("data: slices of the embedded sample stand in for every set")
    found.append(f"word vectors: {listed(line['run']['vectors'] for line in trained)}")
    for name, hashes in data_hashes(trained).items():
        if len(hashes) > 1:
            found.append(f"WARNING: {name} was not the same data in all runs ({len(hashes)} different hashes)")
    return found


def commits(lines: Any) -> list[str]:
    """As git shortens them; "+" stays."""
    return [re.sub(r"^([0-9a-f]{7})[0-9a-f]+", r"\1", line["commit"]) for line in lines]


def listed(values: Any) -> str:
    return ", ".join(sorted({str(value) for value in values})) or "none"


def data_hashes(lines: Sequence[dict[str, Any]]) -> dict[str, set[tuple[str, ...]]]:
    hashes: dict[str, set[tuple[str, ...]]] = {}
    for line in lines:
        data = line["run"]["data"]
        name = f"{data['name']}{'' if data['contractions'] else ', contractions kept'}"
        hashes.setdefault(name, set()).add(tuple(line["data"].get(split, "") for split in ("train", "dev", "test")))
        vectors = f"{line['run']['vectors']}, the word vectors of {name},"
        hashes.setdefault(vectors, set()).add((line["data"].get("vectors", ""),))
    return hashes
