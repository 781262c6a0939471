"""Tables from lines whose scores are known."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from sentence_state import ModelConfig, TrainingConfig
from sentence_state.data.errors import DataError
from sentence_state.experiments.analysis import BIN, binned, bins_of, thirds
from sentence_state.experiments.comparison import compare, versus
from sentence_state.experiments.curves import panel_of
from sentence_state.experiments.document import Report, Section, Table
from sentence_state.experiments.drawing import Curve, Panel, draw, draw_panel
from sentence_state.experiments.experiment import Experiment, Row
from sentence_state.experiments.material import Data
from sentence_state.experiments.measurements import Measurement
from sentence_state.experiments.outcomes import pack
from sentence_state.experiments.rendering import latex, markdown, page
from sentence_state.experiments.report import facts, leave_out_repeated_times
from sentence_state.experiments.runs import Run
from sentence_state.experiments.summaries import summarise


def line(run, right, in_train=(), lengths=None):
    """The kept line of a run that was right or wrong at each of some test sentences."""
    counts = pack([(value, 1, 1) for value in right])
    lengths = pack(range(1, len(right) + 1) if lengths is None else lengths)
    measured = {"score": sum(right) / len(right), "counts": counts, "lengths": lengths, "in_train": list(in_train)}
    measured["metric"] = "accuracy"
    record = {"key": run.key(), "kind": "training", "run": run.describe(), "test": measured, "parameters": 12_345}
    return record


def runs(data, encoder, seeds):
    config = TrainingConfig()
    return tuple(
        Run(Data(data), ModelConfig(encoder=encoder), replace(config, seed=s), test=True) for s in range(seeds)
    )


def row(label, group="", paper=None, against=None, data="mr", seeds=2):
    return Row(label, runs(data, label, seeds), paper, group, against)


def test_a_row_has_mean_and_deviation_over_its_finished_seeds_and_the_difference_to_the_paper():
    rows = (row("S-LSTM", paper=80.0, seeds=3), row("BiLSTM", paper=70.0))
    first, second, _ = rows[0].runs
    records = {run.key(): line(run, right) for run, right in ((first, [1, 1, 1, 0]), (second, [1, 1, 0, 0]))}
    table = compare(Experiment("t", "T", "test", rows), records).tables[0]
    assert table.columns == ("model", "paper", "ours", "difference", "seeds")
    assert table.rows == (("S-LSTM", "80.00", "62.50 ± 17.68", "-17.50", "2"), ("BiLSTM", "70.00", "–", "", "0"))


def test_seeds_of_different_data_are_no_row():
    rows = (row("S-LSTM"),)
    records = {run.key(): line(run, [1] * size) for run, size in zip(rows[0].runs, (4, 5), strict=True)}
    with pytest.raises(DataError, match=r"^mr: the runs of S-LSTM had different data, test sets of 4 and 5 texts$"):
        summarise(Experiment("t", "T", "test", rows), records)


def test_sets_are_averaged_with_and_without_the_sentences_that_stand_in_train():
    rows, records = [], {}
    scores = {"S-LSTM": ([1, 1, 1, 0], [1, 1, 0, 0]), "BiLSTM": ([1, 0, 1, 0], [0, 0, 1, 0])}
    for group, data in (("Books", "fdu/books"), ("DVD", "fdu/dvd")):
        for label in scores:
            against = "BiLSTM" if label == "S-LSTM" else None
            rows.append(row(label, group, 80.0 if group == "Books" else 90.0, against, data))
            for run, right in zip(rows[-1].runs, scores[label], strict=True):
                records[run.key()] = line(run, right, in_train=[0] if group == "Books" else [])
    table = compare(Experiment("table5", "T", "test", tuple(rows)), records).tables[0]
    cells = {cells[:2]: dict(zip(table.columns, cells, strict=True)) for cells in table.rows}
    books, average = cells["Books", "S-LSTM"], cells["average", "S-LSTM"]
    assert books["ours"] == "62.50 ± 17.68"
    assert books["without repeats"] == "50.00 ± 23.57"  # of the last three: two of three right, one of three
    assert books["over baseline"] == "+25.00"
    assert average["paper"] == "85.00"
    assert average["ours"] == "62.50 ± 17.68"
    assert average["without repeats"] == "56.25 ± 20.62"
    assert len(table.bold) == 2
    assert cells["DVD", "S-LSTM"]["without repeats"] == ""


def test_dev_scores_have_nothing_to_do_with_what_of_test_stands_in_train():
    rows = (row("S-LSTM"),)
    records = {run.key(): line(run, [1, 0, 1, 1, 0], in_train=[4]) for run in rows[0].runs}
    for record in records.values():
        record["dev"] = line(rows[0].runs[0], [1, 1, 0])["test"]
    table = compare(Experiment("t", "T", "dev", rows), records).tables[0]
    assert table.columns == ("model", "ours", "seeds")
    assert table.rows == (("S-LSTM", "66.67 ± 0.00", "2"),)


def test_an_average_over_sets_takes_the_seeds_that_all_of_them_have():
    finished = {"fdu/books": {0: 2, 1: 4}, "fdu/dvd": {1: 0, 2: 4}}  # seed -> right of four; other seeds failed
    rows, records = [], {}
    for data, right in finished.items():
        for label in ("S-LSTM", "BiLSTM"):
            rows.append(row(label, data, against="BiLSTM" if label == "S-LSTM" else None, data=data, seeds=3))
            for seed, number in right.items():
                run = rows[-1].runs[seed]
                number = number if label == "S-LSTM" else 1
                records[run.key()] = line(run, [1] * number + [0] * (4 - number))
    table = compare(Experiment("table5", "T", "test", tuple(rows)), records).tables[0]
    cells = {cells[:2]: dict(zip(table.columns, cells, strict=True)) for cells in table.rows}
    average = cells["average", "S-LSTM"]
    assert (average["ours"], average["seeds"]) == ("50.00", "1")  # seed 1: 100 and 0
    assert average["over baseline"] == "+25.00"


def test_a_group_that_is_the_same_in_all_rows_has_no_column():
    rows = (row("S-LSTM", "mr"), row("BiLSTM", "mr"))
    table = compare(Experiment("t", "T", "test", rows, unit="thing"), {}).tables[0]
    assert table.columns == ("thing", "ours", "seeds")


def test_accuracy_and_f1_have_no_average():
    rows, records = [], {}
    for data, metric in (("ewt", "accuracy"), ("conll2003", "f1")):
        for label in ("S-LSTM", "BiLSTM"):
            rows.append(row(label, data, against="BiLSTM" if label == "S-LSTM" else None, data=data))
            for run in rows[-1].runs:
                records[run.key()] = line(run, [1, 0, 1, 1])
                records[run.key()]["test"]["metric"] = metric
    table = compare(Experiment("t", "T", "test", tuple(rows)), records).tables[0]
    assert [cells[0] for cells in table.rows] == ["ewt", "ewt", "conll2003", "conll2003"]


def test_several_sets_are_compared_by_their_mean():
    better, worse = [1] * 30 + [0] * 10, [1] * 20 + [0] * 20
    rows = [row(label, data, data=data, seeds=1) for data in ("fdu/dvd", "fdu/books") for label in ("S-LSTM", "BiLSTM")]
    records = {r.runs[0].key(): line(r.runs[0], better if r.label == "S-LSTM" else worse) for r in rows}
    found = summarise(Experiment("t", "T", "test", tuple(rows)), records)
    result = versus(found[::2], found[1::2])
    assert result.gain == 25.0
    assert result.t is None  # one seed
    assert result.bootstrap < 0.01
    assert result.randomisation < 0.01
    assert versus(found[:1], found[:1]).randomisation == 1.0


def test_a_report_warns_where_data_or_vectors_of_one_name_were_not_the_same():
    lines = []
    for run in runs("mr", "S-LSTM", 3):
        known = {"hardware": "a machine", "commit": "0", "versions": {"torch": "2"}, "seconds": 1.0}
        lines.append(line(run, [1]) | known | {"data": {"train": "a", "dev": "b", "test": "c", "vectors": "d"}})
    assert not any("WARNING" in fact for fact in facts(lines))
    lines[1]["data"] = lines[1]["data"] | {"vectors": "e"}
    (warning,) = (fact for fact in facts(lines) if "WARNING" in fact)
    assert "none, the word vectors of mr, was not the same data" in warning
    lines[2]["data"] = lines[2]["data"] | {"test": "e"}
    assert sum("WARNING" in fact for fact in facts(lines)) == 2


def test_test_sentences_are_binned_by_length():
    single = row("S-LSTM", seeds=1)
    size = 2 * BIN + 30
    lengths = np.random.default_rng(0).permutation(size) + 1
    right = (lengths <= BIN).astype(int)  # the shortest 80 are right
    records = {single.runs[0].key(): line(single.runs[0], right, lengths=lengths)}
    summary = summarise(Experiment("figure4", "T", "test", (single,)), records)[0]
    means, scores = binned(summary, bins_of)
    assert scores.tolist() == [[100.0, 0.0]]
    assert means == pytest.approx([(BIN + 1) / 2, (BIN + 1 + size) / 2])


def test_sentences_of_one_length_are_in_one_bin():
    lengths = np.repeat([7, 3, 5, 9], [60, 100, 90, 20])
    bins = bins_of(lengths)
    assert [sorted(set(lengths[places])) for places in bins] == [[3], [5], [7, 9]]
    assert sorted(np.concatenate(bins)) == list(range(len(lengths)))
    assert [len(places) for places in bins_of(np.full(50, 4))] == [50]
    assert [len(places) for places in bins_of(np.full(500, 4))] == [500]


def test_thirds_are_cut_between_lengths_and_the_order_of_a_file_does_not_matter():
    lengths = np.repeat([7, 3, 5, 9], [60, 100, 90, 20])
    for seed in (None, 0, 1):
        mixed = lengths if seed is None else np.random.default_rng(seed).permutation(lengths)
        parts = thirds(mixed)
        assert [sorted(mixed[places].tolist()) for places in parts] == [[3] * 100, [5] * 90, [7] * 60 + [9] * 20]
        assert sorted(np.concatenate(parts)) == list(range(len(mixed)))
    assert [len(places) for places in thirds(np.full(9, 4))] == [9]
    assert [len(places) for places in thirds(np.array([4, 4, 4, 8]))] == [3, 1]
    assert [len(places) for places in thirds(np.arange(9))] == [3, 3, 3]


def test_times_are_shown_in_each_precision_and_on_each_device_they_were_measured_in():
    rows = (row("S-LSTM"), row("BiLSTM", seeds=1))
    times = Measurement("time", (Data("mr"),), tuple((r.label, r.runs[0].model) for r in rows), precision="bfloat16")
    taken = [("cuda", "bfloat16", 2.0), ("cuda", "float32", 0.5), ("cpu", "float32", 9.0)]
    records = {}
    for device, precision, factor in taken:
        seconds = {"S-LSTM": {"train": [1.0], "decode": [1.0]}, "BiLSTM": {"train": [factor], "decode": [factor]}}
        line = {"seconds": seconds, "hardware": device, "precision": precision, "commit": "0123456789ab"}
        records[replace(times.on(device), precision=precision).key()] = line
    _, *tables = compare(Experiment("t", "T", "test", rows, times=times), records).tables
    assert [table.rows[1][1] for table in tables] == ["2.00", "0.50", "9.00"]
    sizes = "S-LSTM: 300 units, 9 steps; BiLSTM: 300 units."
    assert tables[0].caption == f"Times as ratios to S-LSTM, on cuda, bfloat16, commit 0123456. {sizes}"
    assert "cuda, float32" in tables[1].caption
    assert "cpu, float32" in tables[2].caption


def test_times_that_another_section_has_are_not_repeated():
    scores, times = Table(("model",), (("a",),)), Table(("model",), (("a",),), caption="Times")
    sections = [Section("table7", "T", tables=[scores, times]) for _ in range(2)]
    leave_out_repeated_times(sections)
    assert [section.tables for section in sections] == [[scores, times], [scores]]
    assert sections[1].notes == ["Times: see above; they were not measured again with other word vectors."]


def test_a_point_of_one_seed_has_no_band_and_every_measured_step_a_tick():
    rows = [replace(row("S-LSTM", "window 1", seeds=2), label=str(steps)) for steps in (1, 3)]
    rows = [
        replace(r, runs=tuple(replace(run, model=ModelConfig(num_steps=int(r.label))) for run in r.runs)) for r in rows
    ]
    finished = [*rows[0].runs, rows[1].runs[0]]
    records = {run.key(): line(run, [1, place % 2, 0]) for place, run in enumerate(finished)}
    summaries = summarise(Experiment("figure2", "T", "test", tuple(rows)), records)
    panel = panel_of("", {"window 1": summaries})
    assert panel.ticks == [1, 3]
    assert panel.y_label == "dev accuracy"
    assert panel.curves[0].spread[0] > 0
    assert np.isnan(panel.curves[0].spread[1])
    axes = Figure().subplots()
    draw_panel(axes, panel)
    assert list(axes.get_xticks()) == [1, 3]
    (lines,) = (drawn for drawn in axes.collections if isinstance(drawn, LineCollection))
    assert [len(one) for one in lines.get_segments()] == [2, 0]


REPORT = Report(
    ["one & two"],
    [
        Section(
            "table9",
            "50% <b>",
            ["a_note"],
            [Table(("model", "paper|ours"), (("S-LSTM", "1 ± 2"),), 1, frozenset({0}), "a <caption>")],
        )
    ],
)


def test_what_means_something_to_a_format_is_escaped_in_it():
    assert "| **S-LSTM** | **1 ± 2** |" in markdown(REPORT)
    assert r"paper\|ours" in markdown(REPORT)
    assert r"## 50% \<b>" in markdown(REPORT)
    assert "\n\na \\<caption>\n\n|" in markdown(REPORT)
    assert '<p class="note">a &lt;caption&gt;</p>' in page(REPORT)
    assert "a $<$caption$>$" in latex(REPORT)
    boundaries = replace(REPORT.sections[0], tables=[Table(("model",), (("With <s>, </s>",), ("p < 0.001",)))])
    assert r"| With \<s>, \</s> |" in markdown(replace(REPORT, sections=[boundaries]))  # HTML would strike it out
    assert "| p < 0.001 |" in markdown(replace(REPORT, sections=[boundaries]))
    text = latex(REPORT)
    assert r"one \& two" in text
    assert r"50\% $<$b$>$" in text
    assert r"a\_note" in text
    assert r"\textbf{1 $\pm$ 2} \\" in text
    assert r"$\lambda$ $\geq$ 2" in latex(replace(REPORT, facts=["λ ≥ 2"]))  # pdflatex knows no Greek by itself
    assert "``best'' and \"" in latex(replace(REPORT, facts=['"best" and "']))
    assert '<h2 id="table9">50% &lt;b&gt;</h2>' in page(REPORT)


def test_a_table_is_set_as_small_as_a_page_is_narrow():
    tables = [Table(("model",), (("x" * letters,),)) for letters in (100, 130, 160, 500)]
    texts = [latex(replace(REPORT, sections=[Section("t", "T", tables=[table])])) for table in tables]
    sizes = [next(size for size in ("footnotesize", "scriptsize", "tiny") if "{\\" + size in text) for text in texts]
    assert sizes == ["footnotesize", "scriptsize", "tiny", "tiny"]


def test_systems_of_others_have_a_score_of_the_paper_and_no_other():
    rows = (row("BiLSTM", paper=70.0, seeds=1), row("S-LSTM", paper=80.0, against="BiLSTM", seeds=1))
    records = {one.runs[0].key(): line(one.runs[0], [1, 1, 1, 0]) for one in rows}
    section = compare(Experiment("t", "T", "test", rows, others={"Kim (2014)": 81.5}), records)
    table = section.tables[0]
    *ours, kim = table.rows
    assert [cells[0] for cells in ours] == ["BiLSTM", "S-LSTM"]
    assert kim == ("Kim (2014)", "81.50", *[""] * (len(table.columns) - 2))
    assert "cites" in section.notes[0]


def test_a_smoke_report_says_so_in_every_title_and_every_figure():
    marked = replace(REPORT, smoke=True)
    for text in (markdown(marked), latex(marked), page(marked)):
        assert text.count("SMOKE RUN, NOT A RESULT: ") >= 2
    panel = Panel("", "x", "y", [Curve("ours", [1, 3], [80.0, 82.0], [1.0, 1.0], [(3, 82.64)])])
    plain, smoke = (draw("f", "caption", [panel], smoke=value) for value in (False, True))
    assert smoke.svg != plain.svg
    assert plain.svg == draw("f", "caption", [panel], smoke=False).svg  # the same numbers, the same file
    assert plain.png.startswith(b"\x89PNG")


def test_an_axis_of_ratios_begins_at_zero_and_has_a_line_at_one():
    panel = Panel("", "words", "ratio", [Curve("ours", [1, 3], [0.7, 1.3])], of_ratios=True)
    axes = Figure().subplots()
    draw_panel(axes, panel)
    assert axes.get_ylim()[0] == 0
    assert axes.get_ylim()[1] > 1.3
    assert [1, 1] in [list(line.get_ydata()) for line in axes.lines]
