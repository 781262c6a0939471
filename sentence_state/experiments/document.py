"""What a report consists of, before it is Markdown, LaTeX or HTML."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Table:
    """Cells are text; the first `labels` columns are names, the others numbers. `bold` marks rows by their place. The
    caption stands above."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1
    bold: frozenset[int] = frozenset()
    caption: str = ""


def without_empty_columns(table: Table) -> Table:
    """What the paper does not print leaves whole columns empty."""
    kept = [place for place in range(len(table.columns)) if any(row[place] for row in table.rows) or not table.rows]
    columns, *rows = (tuple(row[place] for place in kept) for row in (table.columns, *table.rows))
    return replace(table, columns=columns, rows=tuple(rows), labels=sum(place < table.labels for place in kept))


@dataclass(frozen=True)
class Figure:
    """A drawing as SVG for the page and PNG for the other two; both empty where matplotlib is missing."""

    name: str
    caption: str
    svg: bytes
    png: bytes
    panels: int = 1  # beside each other


@dataclass
class Section:
    name: str  # table4, figure2, ...
    title: str
    notes: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    details: list[str] = field(default_factory=list)  # notes that a page shows when they are asked for
    is_own: bool = False  # an experiment that is not the paper's


@dataclass
class Report:
    """`smoke` reports are marked as such in every title."""

    facts: list[str]
    sections: list[Section]
    smoke: bool = False

    @property
    def title(self) -> str:
        return f"{self.mark}Sentence-State LSTM: the paper's tables and figures, measured again"

    @property
    def mark(self) -> str:
        return "SMOKE RUN, NOT A RESULT: " if self.smoke else ""
