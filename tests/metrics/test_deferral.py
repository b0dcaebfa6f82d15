from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from counterpath.metrics import deferral_curve
from counterpath.metrics.patient_resampling import resampled_patients

ERRORS = hnp.arrays(float, (15,), elements=st.floats(0, 10).map(lambda x: round(x, 3) + 0.001))


def test_by_hand():
    error, uncertainty = np.array([4.0, 1.0, 3.0, 2.0]), np.array([9.0, 1.0, 7.0, 3.0])
    curve = deferral_curve(error, uncertainty, np.array([0.0, 0.25, 0.5, 0.75]))
    np.testing.assert_allclose(curve.error, np.array([2.5, 2.0, 1.5, 1.0]) / 2.5)
    np.testing.assert_array_equal(curve.random, np.ones(4))
    assert curve.area == pytest.approx((0.5 * 1 + 0.8 + 0.6 + 0.5 * 0.4) / 3)


def test_part_of_a_point_counts_with_its_fraction():
    # Keeping 1.5 of 2 points: (1 + ½ · 3) / 1.5, over a mean of 2
    curve = deferral_curve(np.array([1.0, 3.0]), np.array([0.0, 1.0]), np.array([0.0, 0.25]))
    np.testing.assert_allclose(curve.error, [1.0, 2.5 / 1.5 / 2])


def test_ties_are_the_average_over_their_orders():
    error, uncertainty = np.array([5.0, 1.0, 2.0, 9.0, 4.0]), np.array([2.0, 1.0, 2.0, 2.0, 3.0])
    shares = np.array([0.0, 0.2, 0.4, 0.6, 0.7])
    curve = deferral_curve(error, uncertainty, shares)
    tied = np.flatnonzero(uncertainty == 2)
    broken = []
    for order in permutations(range(3)):
        ranked = uncertainty.copy()
        ranked[tied] += 0.1 * np.array(order)
        broken.append(deferral_curve(error, ranked, shares).error)
    np.testing.assert_allclose(curve.error, np.mean(broken, axis=0))


@settings(deadline=None, max_examples=60)
@given(ERRORS, st.permutations(range(15)))
def test_constant_uncertainty_is_exactly_random(error, order):
    for rows in (slice(None), order):
        curve = deferral_curve(error[rows], np.full(15, 0.3))
        np.testing.assert_array_equal(curve.error, np.ones(19))
        assert curve.area == 1


@settings(deadline=None, max_examples=60)
@given(ERRORS, hnp.arrays(int, (15,), elements=st.integers(0, 4)), st.permutations(range(15)))
def test_the_order_of_rows_does_not_matter(error, uncertainty, order):
    plain, shuffled = deferral_curve(error, uncertainty), deferral_curve(error[order], uncertainty[order])
    np.testing.assert_array_equal(shuffled.error, plain.error)


@settings(deadline=None, max_examples=60)
@given(ERRORS, hnp.arrays(int, (15,), elements=st.integers(0, 4)))
def test_no_uncertainty_beats_the_error_itself(error, uncertainty):
    best, worst = deferral_curve(error, error), deferral_curve(error, -error)
    curve = deferral_curve(error, uncertainty)
    assert (best.error <= curve.error + 1e-12).all()
    assert (curve.error <= worst.error + 1e-12).all()


def test_areas_rank_uncertainties():
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.1, 2, size=4_000)
    error = np.square(spread * rng.normal(size=4_000))
    perfect, right, wrong = (deferral_curve(error, u).area for u in (error, spread, -spread))
    assert perfect < right < 0.75
    assert wrong > 1.25
    chance = [deferral_curve(error, rng.random(4_000)).area for _ in range(200)]
    assert abs(np.mean(chance) - 1) < 3 * np.std(chance) / np.sqrt(200)


def test_only_the_order_of_uncertainty_matters():
    rng = np.random.default_rng(1)
    error, uncertainty = rng.exponential(size=50), rng.normal(size=50)
    np.testing.assert_array_equal(
        deferral_curve(error, uncertainty).error, deferral_curve(error, np.exp(uncertainty)).error
    )


@pytest.mark.parametrize("shares", [[0.0], [0.5, 0.1], [0.0, 1.0], [-0.1, 0.5]])
def test_bad_shares_are_refused(shares):
    with pytest.raises(ValueError, match="increasing numbers, at least 0 and below 1"):
        deferral_curve(np.ones(3), np.ones(3), np.array(shares))


def test_no_error_at_all_is_refused():
    with pytest.raises(ValueError, match="mean of `error` is not positive"):
        deferral_curve(np.zeros(3), np.ones(3))


def test_the_curve_keeps_its_own_shares():
    shares = np.array([0.0, 0.5])
    curve = deferral_curve(np.ones(3), np.ones(3), shares)
    shares[1] = 0.9
    assert curve.shares[1] == 0.5


def visits_of(rng, number=150):
    """Three visits per patient; spread and a quirk of the error are the patient's own."""
    patients = np.repeat(np.arange(number), 3)
    spread = rng.uniform(0.2, 2, size=number)[patients]
    error = spread**2 * rng.gamma(1, size=number)[patients] * rng.gamma(2, size=patients.size)
    return error, spread * rng.uniform(0.7, 1.3, size=patients.size), patients


@pytest.mark.slow  # 600 bootstraps
def test_interval_of_the_area_covers_the_truth_and_needs_the_patients():
    rng = np.random.default_rng(0)
    error, uncertainty, _ = visits_of(rng, number=500_000)
    truth, repeats = deferral_curve(error, uncertainty).area, 300
    hits = {"patients": [], "points": []}
    for seed in range(repeats):
        error, uncertainty, patients = visits_of(rng)
        for name, labels in (("patients", patients), ("points", np.arange(patients.size))):
            lower, upper = deferral_curve(error, uncertainty, patients=labels, resamples=200, seed=seed).area_interval()
            hits[name].append(lower <= truth <= upper)
    standard_error = np.sqrt(0.95 * 0.05 / repeats)
    # 3 standard errors, and two points for the percentile bootstrap at 150 patients and 200 resamples
    assert abs(np.mean(hits["patients"]) - 0.95) < 3 * standard_error + 0.02
    assert np.mean(hits["points"]) < 0.95 - 6 * standard_error


def test_a_resample_is_the_curve_of_the_patients_drawn():
    error, uncertainty, patients = visits_of(np.random.default_rng(1), number=20)
    uncertainty = np.round(uncertainty, 1)  # with ties
    curve = deferral_curve(error, uncertainty, patients=patients, resamples=3, seed=5)
    (drawn,) = resampled_patients(20, 3, 5)
    assert curve.resampled is not None
    for row, chosen in zip(curve.resampled, drawn, strict=True):
        points = (3 * chosen[:, None] + np.arange(3)).ravel()
        np.testing.assert_allclose(row, deferral_curve(error[points], uncertainty[points]).error, rtol=1e-12)


def test_patients_add_an_interval_and_change_nothing_else():
    error, uncertainty, patients = visits_of(np.random.default_rng(2))
    plain = deferral_curve(error, uncertainty)
    curve = deferral_curve(error, uncertainty, patients=patients.astype(str))
    np.testing.assert_array_equal(curve.error, plain.error)
    lower, upper = curve.interval()
    assert (lower <= curve.error).all()
    assert (curve.error <= upper).all()
    np.testing.assert_allclose([lower[0], upper[0]], 1.0)  # keeping all is certain
    wide, narrow = curve.area_interval(), curve.area_interval(level=0.5)
    assert wide[0] < narrow[0] < curve.area < narrow[1] < wide[1]
    assert str(curve).startswith(f"area {curve.area:.3f} (95% interval {wide[0]:.3f} to {wide[1]:.3f}) over")


def test_what_has_no_interval_is_refused():
    error, uncertainty = np.array([0.0, 0.0, 1.0]), np.arange(3.0)
    with pytest.raises(ValueError, match="Pass `patients` to `deferral_curve`"):
        deferral_curve(error, uncertainty).area_interval()
    with pytest.raises(ValueError, match="at least two patients"):
        deferral_curve(error, uncertainty, patients=np.zeros(3))
    with pytest.raises(ValueError, match="too few patients carry them"):
        deferral_curve(error, uncertainty, patients=np.arange(3))
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        deferral_curve(np.ones(3), uncertainty, patients=np.arange(3)).area_interval(level=95)


def test_text():
    curve = deferral_curve(np.array([1.0, 3.0]), np.array([0.0, 1.0]), np.array([0.0, 0.5]))
    assert str(curve) == "area 0.750 over shares 0.00 to 0.50 (random: 1)"
