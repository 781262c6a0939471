"""Section 4.1, experimental settings: Table 1, the statistics of the data."""

from __future__ import annotations

from ..data.benchmarks import SOURCES
from .document import Section, Table, without_empty_columns
from .experiment import Plan
from .measurements import Measurement
from .paper_results import DATA
from .summaries import Records

NOTES = [
    "Words as the files have them, before contractions are split.",
    'The paper\'s "#words" of the 16 sets are thousands, and fit bytes rather than words: both are given.',
    "The paper's counts of CoNLL-2003 include the -DOCSTART- lines; those of PTB fit the sections 02-21, 22 and 23, "
    "while its text names 0-18, 19-21 and 22-24.",
    '"In train": test sentences that stand word for word in the training data.',
]


def table_1(plan: Plan) -> list[Measurement]:
    """Statistics of the data."""
    names = [name for name in SOURCES if name in plan.sets and name != "ptb/02-21"]
    if plan.smoke:
        names = names[:2] or ["mr", "conll2003"]
    return [Measurement("statistics", (plan.data(name),)) for name in names]


def section_1(plan: Plan, records: Records) -> Section:
    rows = []
    for measurement in table_1(plan):
        record = records.get(measurement.key())
        if record is not None:
            rows.append(statistics_row(measurement.data[0].name, record))
    columns = [
        f"{split} {what}" for split in ("train", "dev", "test") for what in ("sentences", "words", "kB", "paper")
    ]
    table = Table(("set", *columns, "in train"), tuple(rows))
    return Section("table1", "Table 1: statistics of the data", NOTES, [without_empty_columns(table)])


def statistics_row(name: str, record: dict) -> tuple[str, ...]:
    printed = DATA.get(name)
    cells = [name]
    for place, split in enumerate(("train", "dev", "test")):
        counts = record["counts"][split]
        cells += [f"{counts['sentences']:,}", f"{counts['words']:,}", f"{counts['bytes'] / 1000:,.0f}"]
        cells.append(f"{printed[2 * place]:,} / {printed[2 * place + 1]:,}" if printed else "")
    return (*cells, str(record["test_in_train"]))
