import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpath.metrics import Estimate, covered, mean_by_patient


def clustered(rng, number=100):
    """Scores of patients with 1 to 5 points each, correlated within a patient; the true mean is 3."""
    counts = rng.integers(1, 6, size=number)
    patients = np.repeat(np.arange(number), counts)
    return 3 + rng.normal(size=number)[patients] + 0.5 * rng.normal(size=patients.size), patients


def test_one_point_per_patient_is_the_usual_standard_error():
    scores = np.random.default_rng(0).exponential(size=50)
    usual = scores.std(ddof=1) / math.sqrt(50)
    for estimate in (mean_by_patient(scores), mean_by_patient(scores, np.arange(50))):
        assert estimate.value == pytest.approx(scores.mean())
        assert estimate.standard_error == pytest.approx(usual)
        assert estimate.patients == 50


def test_by_hand():
    # Sums 3 and 3 over 2 and 1 points: mean 2, residuals −1 and 1, SE² = 2/1 · 2 / 9
    estimate = mean_by_patient(np.array([1.0, 2.0, 3.0]), np.array(["a", "a", "b"]))
    assert estimate.value == pytest.approx(2)
    assert estimate.standard_error == pytest.approx(2 / 3)
    assert estimate.patients == 2


def test_standard_error_is_the_spread_over_repeated_samples():
    rng = np.random.default_rng(0)
    repeats = 2_000
    estimates = [mean_by_patient(*clustered(rng)) for _ in range(repeats)]
    spread = np.std([e.value for e in estimates], ddof=1)
    mean_variance = np.mean([e.standard_error**2 for e in estimates])
    # A standard deviation from 2,000 repeats has a relative standard error of 1/√(2·2,000) = 1.6%
    assert abs(math.sqrt(mean_variance) / spread - 1) < 3 / math.sqrt(2 * repeats)


def test_forgetting_the_patients_understates_the_error():
    scores, patients = clustered(np.random.default_rng(1))
    assert mean_by_patient(scores, patients).standard_error > 1.3 * mean_by_patient(scores).standard_error


def test_copies_of_a_point_add_no_certainty():
    scores = np.random.default_rng(0).normal(size=30)
    once = mean_by_patient(scores)
    thrice = mean_by_patient(np.repeat(scores, 3), np.repeat(np.arange(30), 3))
    assert thrice.standard_error == pytest.approx(once.standard_error)


def test_coverage_is_a_mean_of_booleans():
    inside = covered(np.array([0.0, 2.0]), np.zeros(2), np.ones(2))
    assert mean_by_patient(inside).value == 0.5


def test_one_patient_says_nothing_about_others():
    estimate = mean_by_patient(np.array([1.0, 2.0]), np.array([7, 7]))
    assert estimate == Estimate(1.5, math.inf, 1)
    assert str(estimate) == "1.5 ± unknown (one patient)"


@settings(deadline=None, max_examples=50)
@given(st.permutations(range(12)), st.lists(st.floats(-10, 10), min_size=12, max_size=12))
def test_order_and_kind_of_labels_do_not_matter(order, scores):
    patients = np.repeat(np.arange(4), [1, 2, 4, 5])
    plain = mean_by_patient(np.array(scores), patients)
    shuffled = mean_by_patient(np.array(scores)[order], np.array(list("dbca"))[patients][order])
    assert shuffled.value == pytest.approx(plain.value, abs=1e-12)
    assert shuffled.standard_error == pytest.approx(plain.standard_error, abs=1e-12)


@pytest.mark.parametrize(
    ("value", "standard_error", "text"),
    [
        (0.01234, 0.00041, "0.0123 ± 0.0004"),
        (0.951, 0.0096, "0.951 ± 0.010"),
        (1234.5, 12.3, "1234 ± 12"),
        (1.2345e-9, 4e-11, "1.23e-09 ± 4e-11"),
        (0.5, 0.0, "0.5 ± 0"),
    ],
)
def test_text(value, standard_error, text):
    assert str(Estimate(value, standard_error, 10)) == text


def test_results_are_frozen():
    with pytest.raises(FrozenInstanceError):
        Estimate(1.0, 0.1, 10).value = 2.0  # pyright: ignore[reportAttributeAccessIssue]
