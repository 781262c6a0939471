"""Against enumeration, and against what is known of p under no difference."""

from itertools import product

import numpy as np
import pytest

from sentence_state.experiments.outcomes import score_of
from sentence_state.experiments.significance import approximate_randomisation, paired_bootstrap, t_test


def accuracy_counts(right):
    return np.array([(value, 1, 1) for value in right], float)


FIRST = accuracy_counts([1, 1, 1, 1, 0, 1, 1, 0])
SECOND = accuracy_counts([0, 1, 0, 1, 1, 0, 1, 0])


def test_approximate_randomisation_comes_near_the_exact_test_over_all_swaps():
    observed = abs(score_of(FIRST) - score_of(SECOND))
    differences = []
    for coins in product([0, 1], repeat=len(FIRST)):
        kept = np.array(coins)[:, None]
        one, other = np.where(kept, FIRST, SECOND), np.where(kept, SECOND, FIRST)
        differences.append(abs(score_of(one) - score_of(other)))
    exact = np.mean(np.array(differences) >= observed - 1e-9)
    assert approximate_randomisation([(FIRST, SECOND)], samples=20_000) == pytest.approx(exact, abs=0.015)


def test_paired_bootstrap_comes_near_a_loop_that_draws_sentences():
    rng = np.random.default_rng(1)
    below = 0
    for _ in range(4000):
        drawn = rng.integers(0, len(FIRST), len(FIRST))
        below += score_of(FIRST[drawn]) - score_of(SECOND[drawn]) <= 0
    assert paired_bootstrap([(FIRST, SECOND)], samples=20_000) == pytest.approx(2 * below / 4000, abs=0.03)


@pytest.mark.parametrize("test", [paired_bootstrap, approximate_randomisation])
def test_ties_are_ties_whatever_the_mean_over_seeds_rounds_to(test):
    rng = np.random.default_rng(0)
    sums = [np.stack([rng.binomial(10, share, 30), *[np.full(30, 10)] * 2], axis=1) for share in (0.84, 0.8)]
    means = [counts / 10 for counts in sums]  # tenths are no binary numbers
    assert test([tuple(means)], samples=3000) == test([tuple(counts.astype(float) for counts in sums)], samples=3000)


@pytest.mark.parametrize("test", [paired_bootstrap, approximate_randomisation])
def test_a_clear_difference_is_significant_and_none_is_not(test):
    rng = np.random.default_rng(0)
    good, bad = (accuracy_counts(rng.random(400) < share) for share in (0.9, 0.7))
    assert test([(good, bad)], samples=2000) < 0.01
    assert test([(good, good)], samples=2000) == 1.0
    assert test([(good, bad)], samples=2000) == test([(bad, good)], samples=2000)


@pytest.mark.parametrize("test", [paired_bootstrap, approximate_randomisation])
def test_without_a_difference_one_p_in_twenty_is_below_a_twentieth(test):
    rng = np.random.default_rng(0)
    found = []
    for seed in range(150):
        pair = tuple(accuracy_counts(rng.random(120) < 0.8) for _ in range(2))
        found.append(test([pair], samples=300, seed=seed))
    assert 0.005 < np.mean(np.array(found) < 0.05) < 0.12


def test_spans_are_compared_by_f1_and_sets_by_their_mean():
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 4, 300)
    strong, weak = (np.stack([rng.binomial(gold, share), gold, gold], axis=1).astype(float) for share in (0.9, 0.8))
    assert approximate_randomisation([(strong, weak)]) < 0.01
    both = [(strong, weak), (weak, strong)]  # one set each way: no difference on average
    assert approximate_randomisation(both, samples=500) > 0.9
    assert paired_bootstrap(both, samples=500) > 0.5


def test_the_t_test_of_as_many_scores_is_welchs():
    first, second = [82.1, 82.6, 82.4, 82.9], [81.2, 81.9, 81.4, 81.0]
    a, b = np.array(first), np.array(second)
    t = (a.mean() - b.mean()) / np.sqrt(a.var(ddof=1) / 4 + b.var(ddof=1) / 4)
    assert t == pytest.approx(4.3, abs=0.5)
    assert t_test(first, second) == pytest.approx(0.005, abs=0.003)
    assert t_test(first, second) == t_test(second, first)
    assert t_test([1.0], second) is None


@pytest.mark.parametrize(("size", "spread"), [(3, 1.0), (3, 2.0), (2, 1.0), (5, 2.0)])
def test_a_few_scores_beside_many_are_not_different_more_often_than_they_should(size, spread):
    rng = np.random.default_rng(0)
    found = [t_test(rng.normal(size=30), spread * rng.normal(size=size)) for _ in range(1000)]
    assert np.mean(np.array(found) < 0.05) < 0.07


def test_scores_without_spread_have_no_t_test():
    assert t_test([80.5, 80.5], [81.0, 81.0]) is None
    assert t_test([1.0, 1.0], [1.0, 1.0]) is None
    assert t_test([80.5, 80.5], [81.0, 81.2]) is not None
