"""The paper's numbers contradict themselves exactly where we say they do."""

import numpy as np

from sentence_state import ENCODERS
from sentence_state.data.benchmarks import FDU_TRAIN, SOURCES
from sentence_state.experiments import paper_results as paper


def test_rows_and_the_average_that_is_printed_under_them():
    rows = {encoder: np.mean([timed.score for timed in table.values()]) for encoder, table in paper.DOMAINS.items()}
    assert {encoder: round(mean, 2) for encoder, mean in rows.items()} == {
        "S-LSTM": 85.62,
        "BiLSTM": 84.24,
        "2 stacked BiLSTM": 84.88,
    }
    for encoder, printed in paper.DOMAIN_AVERAGES.items():
        assert printed.score != round(rows[encoder], 2)


def test_the_s_lstm_is_best_in_fourteen_of_sixteen_rows():
    best = [
        name
        for name, timed in paper.DOMAINS["S-LSTM"].items()
        if all(timed.score > table[name].score for encoder, table in paper.DOMAINS.items() if encoder != "S-LSTM")
    ]
    assert len(best) == 14


def test_every_name_is_one_that_we_know():
    for table in (paper.DEVELOPMENT, paper.MOVIE_REVIEW, paper.DOMAINS, paper.POS, paper.NER, paper.MEMORY):
        assert set(table) <= set(ENCODERS)
    assert set(paper.DOMAIN_NAMES.values()) == {f"fdu/{domain}" for domain in FDU_TRAIN}
    assert all(set(table) == set(paper.DOMAIN_NAMES) for table in paper.DOMAINS.values())
    assert set(paper.DATA) <= set(SOURCES)
    assert paper.SENTENCE_NODES[1] == paper.HIDDEN_SIZES[300] == paper.BOUNDARIES[True] == paper.DEVELOPMENT["S-LSTM"]
