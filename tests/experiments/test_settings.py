"""Table 1 from counts that are known."""

from sentence_state.experiments.experiment import Plan
from sentence_state.experiments.settings import section_1, table_1


def test_the_16_sets_have_a_second_table_with_what_the_papers_words_fit():
    plan = Plan(sets=frozenset({"mr", "fdu/apparel"}))
    split = {"sentences": 1400, "words": 93_946, "bytes": 449_000}
    counts = {"train": split, "dev": split | {"bytes": 66_000}, "test": split | {"bytes": 126_000}}
    records = {one.key(): {"counts": counts, "test_in_train": 5} for one in table_1(plan)}
    first, second = section_1(plan, records).tables
    assert [row[0] for row in first.rows] == ["mr", "fdu/apparel"]
    assert first.rows[1][:3] == ("fdu/apparel", "1,400 / 93,946", "1,400 / 525,000")
    assert len(first.columns) == 8
    assert second.rows == (("fdu/apparel", "515", "525", "105", "105", "126", "128"),)
    assert len(section_1(Plan(sets=frozenset({"mr"})), records).tables) == 1
