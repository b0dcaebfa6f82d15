import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import counterpath as cp
from counterpath.metrics import covered, pit_draws, pit_uniformity
from counterpath.simulators.tumor_dynamics import CAPACITY_CM3, SMALLEST_CM3, grow
from counterpath.simulators.tumor_likelihood import TumorParameters, log_likelihood
from counterpath.simulators.tumor_patients import TumorPatients, draw_patients
from counterpath.simulators.tumor_posterior import sample_posterior
from counterpath.simulators.tumor_timeline import observed_timeline
from counterpath.simulators.tumor_truth import TumorSettings

DAILY, CONTINUOUS = TumorSettings(), TumorSettings(continuous=True, step_days=0.05)
PATHS = 400_000


def record(like: cp.Cohort, visits: list[tuple[float, float]], doses: list[tuple[str, float]] = ()) -> cp.Cohort:
    """One patient of subgroup B with these visits (day, cm³) and doses (treatment, day)."""
    treatments = pl.DataFrame(
        {
            "patient": [0] * len(doses),
            "treatment": [name for name, _ in doses],
            "time": [day for _, day in doses],
            "dose": [5.0 if name == "chemotherapy" else 2.0 for name, _ in doses],
        },
        schema={"patient": pl.Int64, "treatment": pl.String, "time": pl.Float64, "dose": pl.Float64},
    )
    return cp.Cohort.from_tables(
        pl.DataFrame([(0, *visit) for visit in visits], schema=["patient", "time", "tumor_volume"], orient="row"),
        treatments,
        pl.DataFrame({"patient": [0], "subgroup": ["B"]}),
        like=like,
        time_zero="as given",
    )


@pytest.fixture(scope="module")
def like():
    return cp.load_tumor_growth(5, seed=0)


def simulate(settings, parameters, start, days, doses, seed=0) -> np.ndarray:
    """Brute force: the volume at the end of `days`, for many noise paths of one patient."""
    alpha, rho, chemo = parameters
    nothing = np.zeros(PATHS, dtype=np.int64)
    person = TumorPatients(*(np.full(PATHS, x) for x in (alpha, rho, chemo)), nothing, nothing, np.full(PATHS, start))
    rng, volume, level = np.random.default_rng(seed), np.full(PATHS, start), 0.0
    for step in range(round(days / settings.step_days)):
        today = [name for name, day in doses if abs(day - step * settings.step_days) < 1e-9]
        level += 5.0 * today.count("chemotherapy")
        volume = grow(
            volume,
            patients=person,
            concentration=np.full(PATHS, level),
            radio_gy=np.full(PATHS, 2.0 * today.count("radiotherapy")),
            noise=settings.noise_std * math.sqrt(settings.step_days) * rng.standard_normal(PATHS),
            gone=rng.random(PATHS),
            step_days=settings.step_days,
            daily=not settings.continuous,
        )
        level *= 0.5**settings.step_days
    return volume


CASES = {
    "one day": ((0.05, 0.004, 0.028), 1, []),
    "a gap of four days": ((0.05, 0.004, 0.028), 4, []),
    "chemotherapy in a gap": ((0.05, 0.01, 0.03), 5, [("chemotherapy", 1.0), ("chemotherapy", 2.0)]),
    "radiotherapy in a gap": ((0.1, 0.01, 0.028), 3, [("radiotherapy", 1.0)]),
    "strong radiotherapy": ((0.25, 0.015, 0.028), 3, [("radiotherapy", 0.0)]),
}


@pytest.mark.slow  # brute force with many steps
@pytest.mark.parametrize("settings", [DAILY, CONTINUOUS], ids=["daily", "continuous"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_likelihood_is_the_density_that_brute_force_finds(like, settings, case):
    """At quantiles of the simulated volumes, against a histogram of their logs, within 4 standard errors and 3%."""
    parameters, days, doses = CASES[case]
    logs = np.log(simulate(settings, parameters, 20.0, days, doses))
    half = 0.1 * logs.std()
    points = np.quantile(logs, [0.05, 0.3, 0.5, 0.7, 0.95])
    inside = np.array([np.mean(np.abs(logs - point) < half) for point in points])
    density = np.array([_density(like, settings, parameters, days, doses, math.exp(point)) for point in points])
    error = np.sqrt(inside * (1 - inside) / PATHS)
    np.testing.assert_array_less(np.abs(density * 2 * half - inside), 4 * error + 0.03 * inside)


def _density(like, settings, parameters, days, doses, volume) -> float:
    history = record(like, [(0.0, 20.0), (float(days), volume)], doses)
    candidate = TumorParameters(*(np.array([[x]]) for x in parameters))
    found = log_likelihood(observed_timeline(history, settings), candidate, settings, np.random.default_rng(0))
    return math.exp(found[0, 0]) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize("alpha", [0.36, 0.39, 0.405])
def test_near_eradication_the_daily_likelihood_keeps_its_shape(like, alpha):
    """The day's factor is a few noises from zero: its log is far from normal, and some tumours are gone."""
    parameters, doses = (alpha, 0.004, 0.028), [("radiotherapy", 1.0)]
    volumes = simulate(DAILY, parameters, 20.0, 3, doses)
    alive = volumes > 1e-6
    logs = np.log(volumes[alive])
    half = 0.08 * logs.std()
    points = np.quantile(logs, [0.2, 0.5, 0.8])
    inside = np.array([np.mean(alive) * np.mean(np.abs(logs - point) < half) for point in points])
    # The branch of those who are gone is drawn per particle: average the likelihood over many.
    history = [record(like, [(0.0, 20.0), (3.0, math.exp(point))], doses) for point in points]
    density = []
    for each in history:
        candidate = TumorParameters(*(np.full((1, 4_000), x) for x in parameters))
        found = log_likelihood(observed_timeline(each, DAILY), candidate, DAILY, np.random.default_rng(0))
        density.append(np.mean(np.exp(found)))
    # A pending day carries its own normalisation; ordinary days drop the constant 1/√(2π).
    np.testing.assert_allclose(np.array(density) / math.sqrt(2 * math.pi) * 2 * half, inside, rtol=0.08)


def test_a_tumour_seen_at_the_floor_has_the_mass_of_the_floor(like):
    parameters, doses = (0.41, 0.004, 0.028), [("radiotherapy", 0.0)]
    volumes = simulate(DAILY, parameters, 20.0, 1, doses)
    history = record(like, [(0.0, 20.0), (1.0, SMALLEST_CM3)], doses)
    candidate = TumorParameters(*(np.array([[x]]) for x in parameters))
    found = log_likelihood(observed_timeline(history, DAILY), candidate, DAILY, np.random.default_rng(0))
    share = np.mean(volumes <= SMALLEST_CM3 * (1 + 1e-9))
    assert math.exp(found[0, 0]) == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / PATHS) + 1e-3)


@pytest.mark.parametrize("settings", [DAILY, CONTINUOUS], ids=["daily", "continuous"])
def test_the_posterior_is_what_plain_sampling_from_the_prior_finds(like, settings):
    """Few visits, so that a million draws from the prior are enough to compare with."""
    visits = [(0.0, 20.0), (2.0, 20.6), (5.0, 14.0)]
    history = record(like, visits, [("chemotherapy", 3.0), ("radiotherapy", 3.0)])
    drawn = draw_patients(300_000, np.random.default_rng(1))
    alpha = drawn.alpha - np.where(drawn.subgroup == 0, 0.00398, 0.0)
    chemo = drawn.chemo_kill - np.where(drawn.subgroup == 2, 0.0028, 0.0)
    candidates = TumorParameters(alpha[None], drawn.rho[None], chemo[None])
    logs = log_likelihood(observed_timeline(history, settings), candidates, settings, np.random.default_rng(2))[0]
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    posterior = sample_posterior(history, settings, np.random.default_rng(3))
    size = 1 / np.sum(weights**2)
    assert posterior.effective_size[0] > 500
    for mine, theirs in ((posterior.parameters.alpha, alpha), (posterior.parameters.rho, drawn.rho)):
        mean, expected = np.sum(posterior.weights * mine), np.sum(weights * theirs)
        std = math.sqrt(np.sum(weights * (theirs - expected) ** 2))
        assert abs(mean - expected) < 4 * std * math.sqrt(1 / size + 1 / posterior.effective_size[0])


VARIANTS = [(a, c) for c in (False, True) for a in ("arms", "randomised")]


@pytest.mark.slow  # a posterior for each of many patients
@pytest.mark.parametrize(("assignment", "continuous"), VARIANTS)
def test_its_intervals_hold_and_its_pit_is_uniform(assignment, continuous):
    """The full table with 10,000 patients is in docs/results/oracle.json."""
    study = cp.simulate_tumor_growth(300, seed=21, assignment=assignment, continuous=continuous)
    history = study.cohort.until(54.0)
    horizons = np.array([1.0, 3.0, 5.0])
    oracle = cp.Oracle(study.truth.settings).fit(study.cohort)
    prediction = oracle.predict(history, cp.Plan.observed(study.cohort), horizons=horizons.tolist(), draws=500)
    outcomes = study.truth.outcomes(history, cp.Plan.observed(study.cohort), horizons)
    assert np.mean(oracle.effective_size >= 500) >= 0.95
    drawn = prediction.sample(500)
    assert np.isfinite(drawn).all()
    assert prediction.mean.max() < CAPACITY_CM3
    assert drawn.min() >= SMALLEST_CM3
    for i in range(len(horizons)):
        for level in (0.5, 0.8, 0.95, 0.99):
            lower, upper = prediction.interval(level)
            share = covered(outcomes[:, i], lower[:, i], upper[:, i]).mean()
            assert abs(share - level) < 3 * math.sqrt(level * (1 - level) / 300)
        pit = pit_draws(outcomes[:, i], drawn[:, :, i], np.random.default_rng(0))
        assert pit_uniformity(pit).p_value > 0.001


def test_two_independent_runs_agree_within_their_monte_carlo_error():
    study = cp.simulate_tumor_growth(40, seed=31)
    history, plan = study.cohort.until(54.0), cp.Plan.dose("chemotherapy")
    oracle = cp.Oracle(study.truth.settings).fit(study.cohort)
    first, second = (oracle.predict(history, plan, horizons=[3], draws=1_000, seed=seed) for seed in (1, 2))
    size = np.minimum(oracle.effective_size, 1_000)
    logs = [np.log(prediction.sample(1_000)[:, :, 0]) for prediction in (first, second)]
    error = logs[0].std(axis=0) * np.sqrt(2 * (1 / size + 1 / 1_000))
    z = (logs[0].mean(axis=0) - logs[1].mean(axis=0)) / np.maximum(error, 1e-12)
    assert np.abs(z).max() < norm.isf(0.0005)


@pytest.mark.slow  # a posterior for each of many patients
def test_the_expected_effect_has_the_sign_and_size_that_the_truth_has():
    study = cp.simulate_tumor_growth(150, seed=41)
    today = study.cohort.until(54.0)
    oracle = cp.Oracle(study.truth.settings).fit(study.cohort)
    plan, none = cp.Plan.repeat("radiotherapy", every=2.0, times=2), cp.Plan.none()
    effect = oracle.expected_effect(today, plan, versus=none, horizons=[5], draws=1_000)[:, 0]
    truth = study.truth
    real = (truth.outcomes(today, plan, np.array([5.0])) - truth.outcomes(today, none, np.array([5.0])))[:, 0]
    assert (effect <= 0).all()
    assert np.corrcoef(effect, real)[0, 1] > 0.9
    assert effect.sum() == pytest.approx(real.sum(), rel=0.15)


def test_it_knows_only_its_own_world():
    ward = cp.load_example_ward()
    with pytest.raises(cp.CohortError, match="knows the tumour growth simulator"):
        cp.Oracle(DAILY).fit(ward)
