"""A report as Markdown, as LaTeX, and as one HTML page that asks no other machine for anything."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path

from ..data.files import replacing, write_text
from .document import Figure, Report, Section, Table

FIGURES = "figures"


def write_report(report: Report, folder: Path) -> list[Path]:
    """report.md, report.tex, report.html, and figures/*.png for the first two; returns the three."""
    folder.mkdir(parents=True, exist_ok=True)
    for figure in (figure for section in report.sections for figure in section.figures if figure.png):
        (folder / FIGURES).mkdir(exist_ok=True)
        with replacing(folder / FIGURES / f"{figure.name}.png") as unfinished:
            unfinished.write_bytes(figure.png)
    texts = {"report.md": markdown(report), "report.tex": latex(report), "report.html": page(report)}
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]


# ---- Markdown ---------------------------------------------------------------------------------------


def markdown(report: Report) -> str:
    parts = [f"# {report.title}", "\n".join(f"- {fact}" for fact in report.facts)]
    for section in report.sections:
        parts.append(f"## {report.mark}{without_tags(section.title)}")
        parts += [part for table in section.tables for part in (without_tags(table.caption), markdown_table(table))]
        parts += [f"![{figure.caption}]({FIGURES}/{figure.name}.png)" for figure in section.figures if figure.png]
        parts += map(without_tags, section.notes)
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_table(table: Table) -> str:
    rules = ["---" if place < table.labels else "---:" for place in range(len(table.columns))]
    rows = [table.columns, rules, *(bold(row, place in table.bold, "**", "**") for place, row in enumerate(table.rows))]
    return "\n".join("| " + " | ".join(without_tags(cell.replace("|", r"\|")) for cell in row) + " |" for row in rows)


def without_tags(text: str) -> str:
    """<s> is a word here, and a tag of HTML in Markdown."""
    return re.sub(r"<(?=[/!?a-zA-Z])", r"\\<", text)


def bold(row: Sequence[str], is_bold: bool, start: str, end: str) -> Sequence[str]:
    return [f"{start}{cell}{end}" if cell else "" for cell in row] if is_bold else row


# ---- LaTeX ------------------------------------------------------------------------------------------

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "±": r"$\pm$", "–": "--",
    "×": r"$\times$", "−": "$-$",
}  # fmt: skip
LETTER, GAP, LINE = 4, 12, 480  # points, of \footnotesize: a letter, what is between columns, the width of a page
PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{booktabs,graphicx,longtable}
\usepackage[margin=2cm]{geometry}
"""


def latex(report: Report) -> str:
    parts = [PREAMBLE, rf"\title{{{escape(report.title)}}}", r"\date{}", r"\begin{document}", r"\maketitle"]
    parts.append(
        "\n".join([r"\begin{itemize}", *(rf"\item {escape(fact)}" for fact in report.facts), r"\end{itemize}"])
    )
    for section in report.sections:
        parts.append(rf"\section*{{{escape(report.mark + section.title)}}}")
        parts += [part for table in section.tables for part in (escape(table.caption), latex_table(table)) if part]
        parts += [latex_figure(figure) for figure in section.figures if figure.png]
        parts += [escape(note) for note in section.notes]
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def latex_table(table: Table) -> str:
    columns = "".join("l" if place < table.labels else "r" for place in range(len(table.columns)))
    head = " & ".join(map(escape, table.columns)) + r" \\"
    rows = [
        " & ".join(bold([escape(cell) for cell in row], place in table.bold, r"\textbf{", "}")) + r" \\"
        for place, row in enumerate(table.rows)
    ]
    size = r"\tiny\setlength{\tabcolsep}{2pt}" if is_wide(table) else r"\footnotesize"
    lines = [rf"{{{size}", rf"\begin{{longtable}}{{{columns}}}", r"\toprule", head, r"\midrule", r"\endhead"]
    return "\n".join([*lines, *rows, r"\bottomrule", r"\end{longtable}", "}"])


def is_wide(table: Table) -> bool:
    letters = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    return LETTER * sum(letters) + GAP * len(letters) > LINE


def latex_figure(figure: Figure) -> str:
    return "\n".join(
        [rf"\noindent\includegraphics[width=\linewidth]{{{FIGURES}/{figure.name}.png}}", "", escape(figure.caption)]
    )


def escape(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


# ---- HTML -------------------------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light dark; --line: #8884; --mark: #c60; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .55rem; text-align: right; border-bottom: 1px solid var(--line); }
td { white-space: nowrap; } td.name { white-space: normal; min-width: 5rem; } table { font-size: .92rem; }
th.name, td.name { text-align: left; } tr.bold td { font-weight: 700; }
figure { margin: 1rem 0; } figure img { max-width: 100%; background: #fff; } figcaption { font-size: .9rem; }
.note { font-size: .9rem; } .smoke { background: var(--mark); color: #fff; padding: .6rem 1rem; font-weight: 700; }
nav { columns: 2; font-size: .9rem; } nav ul { margin: 0; }
"""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
SMOKE = "Smoke run: tiny models on slices of the data. It shows that everything works; no number here is a result."


def page(report: Report) -> str:
    parts = [f"<h1>{html.escape(report.title)}</h1>"]
    if report.smoke:
        parts.append(f'<p class="smoke">{SMOKE}</p>')
    parts.append("<ul>" + "".join(f"<li>{html.escape(fact)}</li>" for fact in report.facts) + "</ul>")
    names = [section.name for section in report.sections]
    again = [names[:place].count(name) for place, name in enumerate(names)]  # a table may stand there more than once
    anchors = [f"{name}-{before + 1}" if before else name for name, before in zip(names, again, strict=True)]
    links = [
        f'<li><a href="#{anchor}">{html.escape(s.title)}</a></li>'
        for anchor, s in zip(anchors, report.sections, strict=True)
    ]
    parts.append(f"<nav><ul>{''.join(links)}</ul></nav>")
    parts += [page_section(s, anchor, report.mark) for anchor, s in zip(anchors, report.sections, strict=True)]
    body = "\n".join(parts)
    return PAGE.format(title=html.escape(report.title), style=STYLE, body=body)


def page_section(section: Section, anchor: str, mark: str) -> str:
    parts = [f'<h2 id="{anchor}">{html.escape(mark + section.title)}</h2>']
    parts += [page_table(table) for table in section.tables]
    parts += [page_figure(figure) for figure in section.figures]
    parts += [f'<p class="note">{html.escape(note)}</p>' for note in section.notes]
    return "\n".join(parts)


def page_table(table: Table) -> str:
    def cells(row: Sequence[str], tag: str) -> str:
        classes = [' class="name"' if place < table.labels else "" for place in range(len(row))]
        return "".join(f"<{tag}{kind}>{html.escape(cell)}</{tag}>" for cell, kind in zip(row, classes, strict=True))

    kinds = [' class="bold"' if place in table.bold else "" for place in range(len(table.rows))]
    rows = [f"<tr{kind}>{cells(row, 'td')}</tr>" for row, kind in zip(table.rows, kinds, strict=True)]
    head = f"<thead><tr>{cells(table.columns, 'th')}</tr></thead>"
    caption = f'<p class="note">{html.escape(table.caption)}</p>' if table.caption else ""
    return f'{caption}<div class="scroll"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def page_figure(figure: Figure) -> str:
    caption = html.escape(figure.caption)
    if not figure.svg:
        return f'<p class="note">{caption} (not drawn: matplotlib is missing)</p>'
    source = f"data:image/svg+xml;base64,{base64.b64encode(figure.svg).decode()}"
    return f'<figure><img alt="{caption}" src="{source}"><figcaption>{caption}</figcaption></figure>'
