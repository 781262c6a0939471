"""Section 4.1, experimental settings: Table 1, the statistics of the data."""

from __future__ import annotations

from typing import Any

from ..data.benchmarks import OTHER_SPLITS, SOURCES
from .document import Section, Table, without_empty_columns
from .experiment import Plan
from .measurements import Measurement
from .paper_results import DATA, DOMAIN_NAMES
from .summaries import Records

NOTES = [
    "Sentences / words, as the files have them, before contractions are split.",
    'The paper\'s "#words" of the 16 sets are bytes in thousands, except those of Books, which are words. Train covers '
    "train and dev, and dev is a fifth of that (not of Sports, IMDB and MR, where it is more). The second table has "
    "what they fit; the paper's are larger by the few bytes that stand beside each text in its file.",
    "The paper's counts of CoNLL-2003 include the -DOCSTART- lines; those of PTB fit the sections 02-21, 22 and 23, "
    "while its text names 0-18, 19-21 and 22-24.",
    '"In train": test sentences that stand word for word in the training data.',
]
SPLITS = ("train", "dev", "test")


def table_1(plan: Plan) -> list[Measurement]:
    """Statistics of the data."""
    names = [name for name in SOURCES if name in plan.sets and name not in OTHER_SPLITS]
    if plan.smoke:
        names = names[:2] or ["mr", "conll2003"]
    return [Measurement("statistics", (plan.data(name),)) for name in names]


def section_1(plan: Plan, records: Records) -> Section:
    """The counts, and of the 16 sets what the paper's fit."""
    found = {one.data[0].name: records[one.key()] for one in table_1(plan) if one.key() in records}
    columns = [column for split in SPLITS for column in (split, f"{split}, paper")]
    rows = tuple(statistics_row(name, record) for name, record in found.items())
    tables = [without_empty_columns(Table(("set", *columns, "in train"), rows))]
    sizes = tuple(size_row(name, record["counts"]) for name, record in found.items() if name in DOMAIN_NAMES.values())
    if sizes:
        columns = [
            "train and dev, kB",
            "paper's train, K",
            "a fifth, K",
            "paper's dev, K",
            "test, kB",
            "paper's test, K",
        ]
        tables.append(Table(("set", *columns), sizes))
    return Section("table1", "Table 1: statistics of the data", NOTES, tables)


def statistics_row(name: str, record: dict[str, Any]) -> tuple[str, ...]:
    printed = DATA.get(name)
    cells = [name]
    for place, split in enumerate(SPLITS):
        counts = record["counts"][split]
        cells.append(f"{counts['sentences']:,} / {counts['words']:,}")
        cells.append(f"{printed[2 * place]:,} / {printed[2 * place + 1]:,}" if printed else "")
    return (*cells, str(record["test_in_train"]))


def size_row(name: str, counts: dict[str, dict[str, int]]) -> tuple[str, ...]:
    """Thousands of bytes beside the paper's thousands."""
    train, dev, test = (DATA[name][place] / 1000 for place in (1, 3, 5))
    both, own_test = counts["train"]["bytes"] + counts["dev"]["bytes"], counts["test"]["bytes"]
    ours = [f"{value / 1000:,.0f}" for value in (both, own_test)]
    return (name, ours[0], f"{train:,.0f}", f"{train / 5:,.0f}", f"{dev:,.0f}", ours[1], f"{test:,.0f}")
