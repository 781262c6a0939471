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


def sections_before(folder: Path) -> int:
    """Of the report that stands there."""
    path = folder / "report.md"
    return path.read_text(encoding="utf-8").count("\n## ") if path.is_file() else 0


# ---- Markdown ---------------------------------------------------------------------------------------


def markdown(report: Report) -> str:
    parts = [f"# {report.title}", "\n".join(f"- {fact}" for fact in report.facts)]
    for section in report.sections:
        parts.append(f"## {report.mark}{without_tags(section.title)}")
        parts += [part for table in section.tables for part in (without_tags(table.caption), markdown_table(table))]
        parts += [f"![{figure.caption}]({FIGURES}/{figure.name}.png)" for figure in section.figures if figure.png]
        parts += map(without_tags, [*section.notes, *section.details])
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
    "×": r"$\times$", "−": "$-$", "≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$", "≈": r"$\approx$", "→": r"$\to$",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "δ": r"$\delta$", "ε": r"$\epsilon$", "η": r"$\eta$",
    "θ": r"$\theta$", "κ": r"$\kappa$", "λ": r"$\lambda$", "μ": r"$\mu$", "π": r"$\pi$", "ρ": r"$\rho$",
    "σ": r"$\sigma$", "τ": r"$\tau$", "φ": r"$\phi$", "χ": r"$\chi$", "ψ": r"$\psi$", "ω": r"$\omega$",
    "Δ": r"$\Delta$", "Σ": r"$\Sigma$", "Ω": r"$\Omega$",
}  # fmt: skip
LINE = 505  # points, the width of a page
SIZES = (  # of tables, the largest first: a letter in points, what is between columns
    (r"\footnotesize", 4.0, 12),
    (r"\scriptsize\setlength{\tabcolsep}{3pt}", 3.5, 6),
    (r"\tiny\setlength{\tabcolsep}{2pt}", 2.5, 4),
)
PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{booktabs,graphicx,longtable}
\usepackage[margin=1.5cm]{geometry}
% no heading at the foot of a page, away from its table
\newcommand{\heading}[1]{\par\vskip0pt plus8\baselineskip\penalty-200\vskip0pt plus-8\baselineskip\section*{#1}}
"""


def latex(report: Report) -> str:
    parts = [PREAMBLE, rf"\title{{{escape(report.title)}}}", r"\date{}", r"\begin{document}", r"\maketitle"]
    parts.append(
        "\n".join([r"\begin{itemize}", *(rf"\item {escape(fact)}" for fact in report.facts), r"\end{itemize}"])
    )
    for section in report.sections:
        parts.append(rf"\heading{{{escape(report.mark + section.title)}}}")
        parts += [part for table in section.tables for part in (escape(table.caption), latex_table(table)) if part]
        parts += [latex_figure(figure) for figure in section.figures if figure.png]
        parts += [escape(note) for note in [*section.notes, *section.details]]
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def latex_table(table: Table) -> str:
    columns = "".join("l" if place < table.labels else "r" for place in range(len(table.columns)))
    head = " & ".join(map(escape, table.columns)) + r" \\"
    rows = [
        " & ".join(bold([escape(cell) for cell in row], place in table.bold, r"\textbf{", "}")) + r" \\"
        for place, row in enumerate(table.rows)
    ]
    lines = [rf"{{{size_of(table)}", rf"\begin{{longtable}}{{{columns}}}", r"\toprule", head, r"\midrule", r"\endhead"]
    return "\n".join([*lines, *rows, r"\bottomrule", r"\end{longtable}", "}"])


def size_of(table: Table) -> str:
    """The largest in which a row fits on a line."""
    letters = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    fitting = (size for size, letter, gap in SIZES if letter * sum(letters) + gap * len(letters) <= LINE)
    return next(fitting, SIZES[-1][0])


def latex_figure(figure: Figure) -> str:
    width = r"\linewidth" if figure.panels > 1 else r"0.65\linewidth"
    drawing = rf"\includegraphics[width={width}]{{{FIGURES}/{figure.name}.png}}"
    return "\n".join([r"\begin{center}", drawing, "", rf"\small {escape(figure.caption)}", r"\end{center}"])


def escape(text: str) -> str:
    """Quotes in pairs open and close."""
    return re.sub(r'"([^"]*)"', r"``\1''", "".join(LATEX.get(letter, letter) for letter in text))


# ---- HTML -------------------------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light dark; --line: #8884; --mark: #c60; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
.scroll, figure { overflow-x: auto; }
.scroll { /* a shadow at the side where there is more */
  background: linear-gradient(to right, Canvas 40%, #0000) 0 0 / 3rem 100% no-repeat local,
    linear-gradient(to left, Canvas 40%, #0000) 100% 0 / 3rem 100% no-repeat local,
    linear-gradient(to right, #8886, #0000) 0 0 / .9rem 100% no-repeat scroll,
    linear-gradient(to left, #8886, #0000) 100% 0 / .9rem 100% no-repeat scroll; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .55rem; text-align: right; border-bottom: 1px solid var(--line); }
td { white-space: nowrap; } td.name { white-space: normal; min-width: 5rem; } table { font-size: .92rem; }
th.name, td.name { text-align: left; } tr.bold td, td.holds, td.does { font-weight: 700; }
td.holds { color: light-dark(#06703c, #5fd39a); } td.does { color: light-dark(#a3320b, #ff9d73); }
figure { margin: 1rem 0; } figure img { max-width: 100%; background: #fff; } figcaption { font-size: .9rem; }
.note { font-size: .9rem; } .smoke { background: var(--mark); color: #fff; padding: .6rem 1rem; font-weight: 700; }
nav ul { columns: 2 22rem; font-size: .9rem; margin: 0; } summary { font-size: .9rem; cursor: pointer; }
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
        f'<li><a href="#{a}">{html.escape(s.title)}</a></li>' for a, s in zip(anchors, report.sections, strict=True)
    ]
    for heading, is_own in (("The paper", False), ("Experiments of our own", True)):
        own = [link for link, section in zip(links, report.sections, strict=True) if section.is_own == is_own]
        parts.append(f"<nav><b>{heading}</b><ul>{''.join(own)}</ul></nav>" if own else "")
    parts += [page_section(s, anchor, report.mark) for anchor, s in zip(anchors, report.sections, strict=True)]
    body = "\n".join(parts)
    return PAGE.format(title=html.escape(report.title), style=STYLE, body=body)


def page_section(section: Section, anchor: str, mark: str) -> str:
    parts = [f'<h2 id="{anchor}">{html.escape(mark + section.title)}</h2>']
    parts += [page_table(table) for table in section.tables]
    parts += [page_figure(figure) for figure in section.figures]
    parts += [f'<p class="note">{html.escape(note)}</p>' for note in section.notes]
    details = [f'<p class="note">{html.escape(note)}</p>' for note in section.details]
    parts += [f"<details><summary>Settings</summary>{''.join(details)}</details>"] if details else []
    return "\n".join(parts)


def page_table(table: Table) -> str:
    def cells(row: Sequence[str], tag: str) -> str:
        verdict = table.columns.index("verdict") if "verdict" in table.columns and tag == "td" else None
        classes = [["name"] * (place < table.labels) for place in range(len(row))]
        if verdict is not None:
            classes[verdict].append(row[verdict].split()[0])  # holds, does (not hold), not (decided)
        kinds = [f' class="{" ".join(names)}"' if names else "" for names in classes]
        return "".join(f"<{tag}{kind}>{html.escape(cell)}</{tag}>" for cell, kind in zip(row, kinds, strict=True))

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
    width = f' style="min-width: {22 * figure.panels}rem"' if figure.panels > 1 else ""
    return f'<figure><img alt="{caption}" src="{source}"{width}><figcaption>{caption}</figcaption></figure>'
