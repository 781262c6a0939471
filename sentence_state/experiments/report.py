"""Measured beside printed: everything that is finished, as a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .catalogue import Target
from .claims import section_of_claims
from .document import Report, Section, Table
from .summaries import Records, shortened, variants

READING = (
    '"Paper", "best" and "fast" are presets, the same settings for every encoder: the paper\'s, those that dev chose '
    "for S-LSTM (on MR; for taggers on CoNLL-2003), and those for a laptop. Any other name of settings is that of a "
    "folder, with settings for each encoder. A note under each table says where its models and their training are not "
    "the paper's (of several values, the names of the rows say which is whose): what differs there is the paper's "
    'encoder in another model, and no replication of the paper. One such difference is a "consistency" above 0: every '
    "batch is read twice, with other dropout, and there is a penalty where the two answers differ.",
    "Ours: mean ± sd over seeds. Difference: ours less the paper's. Bold: averages of the rows above.",
    "p, all two-sided: the t-tests, Welch's and Student's, of which the larger p stands, are over seeds, and ask "
    "whether other seeds would show the difference again on the same sentences; paired bootstrap and approximate "
    "randomisation are over sentences, each with its outcome averaged over seeds, and ask whether other sentences "
    "would. A small p beside a large one is no contradiction: the seeds were enough, the sentences too few. No p is "
    "corrected for the number of comparisons: of twenty differences that are chance, one has a p below 0.05.",
    "Times are medians of ratios over rounds in which the models took turns on the same batches of 10, in one process; "
    "the paper's are ratios of its seconds. Tuned models are not all of one size: the line above each table of times "
    "says which were timed, and where.",
    "Word vectors go by the name of their file, which says nothing about what was done to make them.",
    'A commit with "+" had changes that were not committed.',
)


def make_report(targets: Sequence[Target], records: Records, smoke: bool) -> Report:
    """Sections of the targets of which anything is finished."""
    begun = [target for target in targets if used(target, records)]
    lines = [record for target in begun for record in used(target, records)]
    sections = [target.section(records) for target in begun]
    leave_out_repeated_times(sections)
    opening = [Section("reading", "How to read this report", list(READING))]
    if claims := [row for target in begun for row in target.claims(records)]:
        opening.append(section_of_claims(claims))
    return Report(facts(lines), [*opening, *sections], smoke)


def leave_out_repeated_times(sections: Sequence[Section]) -> None:
    """Times are measured without word vectors of a file: a table that stands there for each of these has them once."""
    shown: list[Table] = []
    for section in sections:
        repeated = [table for table in section.tables if table.caption and table in shown]
        section.tables = [table for table in section.tables if table not in repeated]
        if repeated:
            section.notes.append("Times: see above; they were not measured again with other word vectors.")
        shown += section.tables


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
    found.append(f"hardware: {listed((line['hardware'] for line in unique), '; ')}")
    found.append(f"torch {listed(line['versions']['torch'] for line in unique)}; commit {listed(commits(unique))}")
    if any(line["run"]["data"]["name"].startswith("sample/") for line in trained):
        found.append("data: slices of the embedded sample stand in for every set")
    found.append(f"word vectors: {listed(line['run']['vectors'] for line in trained)}")
    for name, hashes in data_hashes(trained).items():
        if len(hashes) > 1:
            found.append(f"WARNING: {name} was not the same data in all runs ({len(hashes)} different hashes)")
    return found


def commits(lines: Any) -> list[str]:
    return [shortened(line["commit"]) for line in lines]


def listed(values: Any, between: str = ", ") -> str:
    return between.join(sorted({str(value) for value in values})) or "none"


def data_hashes(lines: Sequence[dict[str, Any]]) -> dict[str, set[tuple[str, ...]]]:
    hashes: dict[str, set[tuple[str, ...]]] = {}
    for line in lines:
        data = line["run"]["data"]
        name = f"{data['name']}{'' if data['contractions'] else ', contractions kept'}"
        hashes.setdefault(name, set()).add(tuple(line["data"].get(split, "") for split in ("train", "dev", "test")))
        vectors = f"{line['run']['vectors']}, the word vectors of {name},"
        hashes.setdefault(vectors, set()).add((line["data"].get("vectors", ""),))
    return hashes
