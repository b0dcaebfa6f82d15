import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import multivariate_normal, norm, truncnorm

import counterpath as cp
from counterpath.cohort import Plan, read_cohort
from counterpath.simulators.tumor_dynamics import CAPACITY_CM3, SMALLEST_CM3, grow
from counterpath.simulators.tumor_patients import STAGES, TumorPatients, diameter_cm, draw_patients

PATIENTS = 20_000


@pytest.fixture(scope="module")
def people():
    return draw_patients(PATIENTS, np.random.default_rng(0))


@pytest.fixture(scope="module")
def arms():
    return cp.simulate_tumor_growth(3_000, seed=1, assignment="arms")


@pytest.fixture(scope="module")
def randomised():
    return cp.simulate_tumor_growth(3_000, seed=2)


@pytest.fixture(scope="module")
def continuous():
    return cp.simulate_tumor_growth(2_000, seed=3, continuous=True)


def within_three_errors(values: np.ndarray, expected: float) -> bool:
    return abs(values.mean() - expected) < 3 * values.std() / math.sqrt(len(values))


def test_a_day_by_hand_is_the_daily_map():
    """V = 100 cm³, both treatments today, half a dose of chemotherapy left of yesterday."""
    one = TumorPatients(*(np.array([x]) for x in (0.05, 0.002, 0.03)), np.array([0]), np.array([0]), np.array([100.0]))
    after = grow(
        np.array([100.0]),
        patients=one,
        concentration=np.array([7.5]),
        radio_gy=np.array([2.0]),
        noise=np.array([0.01]),
        gone=np.array([0.5]),
        step_days=1.0,
        daily=True,
    )
    by_hand = 100 * (1 + 0.002 * math.log(math.pi / 6 * 30**3 / 100) - 0.03 * 7.5 - 0.05 * 2 - 0.005 * 4 + 0.01)
    assert after[0] == pytest.approx(by_hand, rel=1e-14)
    assert pytest.approx(14137.17, abs=0.01) == CAPACITY_CM3


@pytest.mark.parametrize("fixture", ["arms", "randomised"])
def test_every_day_of_a_study_is_that_map(fixture, request):
    truth = request.getfixturevalue(fixture).truth
    rows = np.random.default_rng(0).integers(0, len(truth.ids), 200)
    days = np.random.default_rng(1).integers(0, 59, 200)
    for patient, day in zip(rows, days, strict=True):
        before = truth.volumes_cm3[patient, day]
        concentration = sum(5.0 * 0.5 ** (day - d) for d in range(day + 1) if truth.given[patient, d, 0])
        dose = 2.0 * truth.given[patient, day, 1]
        person = truth.patients
        factor = (
            1
            + person.rho[patient] * math.log(CAPACITY_CM3 / before)
            - person.chemo_kill[patient] * concentration
            - person.alpha[patient] * dose
            - person.alpha[patient] / 10 * dose**2
            + 0.01 * truth.noise[patient, day]
        )
        expected = max(before * factor, SMALLEST_CM3)
        assert truth.volumes_cm3[patient, day + 1] in (pytest.approx(expected, rel=1e-12), SMALLEST_CM3)


def test_alpha_and_rho_are_the_truncated_pair(people):
    """Against a big sample of the untruncated law, cut to the positive quadrant."""
    covariance = 0.87 * 0.168 * 7.23e-3
    law = multivariate_normal([0.0398, 7e-5], [[0.168**2, covariance], [covariance, 7.23e-3**2]])
    drawn = law.rvs(1_000_000, random_state=1)
    drawn = drawn[(drawn > 0).all(axis=1)]
    alpha = people.alpha - np.where(people.subgroup == 0, 0.00398, 0.0)
    for values, reference in ((alpha, drawn[:, 0]), (people.rho, drawn[:, 1])):
        error = math.hypot(values.std() / math.sqrt(len(values)), reference.std() / math.sqrt(len(reference)))
        assert abs(values.mean() - reference.mean()) < 3 * error
        assert values.std() == pytest.approx(reference.std(), rel=0.03)
    assert np.corrcoef(alpha, people.rho)[0, 1] == pytest.approx(np.corrcoef(drawn.T)[0, 1], abs=0.02)
    assert alpha.min() > 0
    assert people.rho.min() > 0


def test_subgroups_are_thirds_and_the_first_and_third_respond_better(people):
    for group in range(3):
        share = (people.subgroup == group).astype(float)
        assert within_three_errors(share, 1 / 3)
    assert within_three_errors(people.chemo_kill[people.subgroup != 2], 0.028)
    assert within_three_errors(people.chemo_kill[people.subgroup == 2], 0.028 * 1.1)
    np.testing.assert_array_equal(people.beta, people.alpha / 10)


def test_stages_and_their_sizes(people):
    total = sum(stage[-1] for stage in STAGES.values())
    diameters = diameter_cm(people.initial_volume_cm3)
    for number, (mean, std, low, high, count) in enumerate(STAGES.values()):
        mine = people.stage == number
        assert within_three_errors(mine.astype(float), count / total)
        assert diameters[mine].min() >= low - 1e-9
        assert diameters[mine].max() <= high + 1e-9
        ends = (np.log(low) - mean) / std, (np.log(high) - mean) / std
        assert within_three_errors(np.log(diameters[mine]), truncnorm.mean(*ends, loc=mean, scale=std))


def test_arms_are_the_papers_schedules(arms):
    truth = arms.truth
    assert within_three_errors(truth.arm.astype(float), 0.5)
    chemo, radio = truth.given[:, :, 0], truth.given[:, :, 1]
    for arm, chemo_days, radio_days in ((0, [27, 34, 41, 48, 55], []), (1, [27, 41, 55], [27, 41, 55])):
        mine = truth.arm == arm
        assert (np.flatnonzero(chemo[mine].all(axis=0)) == chemo_days).all()
        assert chemo[mine].sum() == mine.sum() * len(chemo_days)
        assert (np.flatnonzero(radio[mine].all(axis=0)) == radio_days).all()
        assert radio[mine].sum() == mine.sum() * len(radio_days)


def test_randomised_days_are_one_in_seven_from_day_ten(randomised):
    given = randomised.truth.given
    assert not given[:, :10].any()
    for kind in range(2):
        assert within_three_errors(given[:, 10:-1, kind].ravel().astype(float), 1 / 7)
    together = given[:, 10:-1].all(axis=2).ravel().astype(float)
    assert within_three_errors(together, 1 / 49)  # independently


def test_visits_come_with_their_chance(randomised):
    truth = randomised.truth
    assert truth.observed[:, 0].all()
    residual = (truth.observed - truth.visit_chance)[:, 1:]
    assert within_three_errors(residual.ravel(), 0.0)
    # ζ by hand for one patient and day, from the latent diameters of the last 15 days
    diameters = diameter_cm(truth.volumes_cm3[5, 16:31])
    expected = 1 / (1 + math.exp(-(diameters.mean() / 13 - 0.5)))
    assert truth.visit_chance[5, 30] == pytest.approx(expected)


def test_more_informative_visits_follow_size_more():
    share = {}
    for gamma in (1.0, 5.0):
        truth = cp.simulate_tumor_growth(2_000, seed=4, observation_gamma=gamma).truth
        large = truth.volumes_cm3[:, 30] > np.quantile(truth.volumes_cm3[:, 30], 0.8)
        share[gamma] = truth.observed[large].mean() - truth.observed[~large].mean()
    assert share[5.0] > 2 * share[1.0] > 0


def test_confounded_treatment_follows_what_was_observed_and_hidden_what_was_not():
    for assignment, seen in (("confounded", True), ("hidden confounding", False)):
        simulation = cp.simulate_tumor_growth(3_000, seed=5, assignment=assignment)
        assert not simulation.cohort.schema.randomised
        truth = simulation.truth
        large = truth.volumes_cm3[:, 20] > np.quantile(truth.volumes_cm3[:, 20], 0.8)
        assert truth.given[large, 20:].mean() > 2 * truth.given[~large, 20:].mean()
        # Other visits with everything else the same: only a rule that looks at visits can change.
        other = cp.simulate_tumor_growth(3_000, seed=5, assignment=assignment, seeds={"visits": 77}).truth
        assert (truth.given != other.given).any() == seen


def test_seeds_apart_change_one_thing_each():
    base = cp.simulate_tumor_growth(200, seed=6).truth
    noise = cp.simulate_tumor_growth(200, seed=6, seeds={"noise": 1}).truth
    treatment = cp.simulate_tumor_growth(200, seed=6, seeds={"treatment": 1}).truth
    np.testing.assert_array_equal(base.patients.alpha, noise.patients.alpha)
    np.testing.assert_array_equal(base.given, noise.given)
    assert (base.volumes_cm3[:, 1] != noise.volumes_cm3[:, 1]).all()
    np.testing.assert_array_equal(base.noise, treatment.noise)
    np.testing.assert_array_equal(base.volumes_cm3[:, :11], treatment.volumes_cm3[:, :11])
    assert (base.given != treatment.given).any()
    again = cp.simulate_tumor_growth(200, seed=6)
    assert again.cohort.equals(cp.load_tumor_growth(200, seed=6))


@pytest.mark.parametrize("fixture", ["arms", "randomised", "continuous"])
def test_branching_under_what_really_followed_is_what_really_happened(fixture, request):
    simulation = request.getfixturevalue(fixture)
    history = simulation.cohort.until(54.0)
    horizons = np.arange(1.0, 6.0)
    futures = simulation.truth.outcomes(history, Plan.observed(simulation.cohort), horizons)
    steps = simulation.truth.settings.step_of(54.0 + horizons)
    np.testing.assert_allclose(futures, simulation.truth.volumes_cm3[:, steps], rtol=1e-9)


def test_branching_shares_history_and_noise(randomised):
    """Two equal plans, equal futures; a dose now acts tomorrow and not before; Δ = 1 knows only today's decision."""
    cohort, truth = randomised.cohort, randomised.truth
    today = cohort.until(54.0)[:500]
    horizons = np.array([0.0, 1.0, 2.0, 5.0])
    none = truth.outcomes(today, Plan.none(), horizons)
    np.testing.assert_array_equal(none, truth.outcomes(today, Plan.none(), horizons))
    treated = truth.outcomes(today, Plan.dose("radiotherapy"), horizons)
    later = truth.outcomes(today, Plan.dose("radiotherapy", at=1.0), horizons)
    np.testing.assert_array_equal(none[:, 0], treated[:, 0])
    assert (treated[:, 1] < none[:, 1]).mean() > 0.97  # all but tumours that are gone anyway
    np.testing.assert_array_equal(later[:, 1], none[:, 1])
    kill = 2.4 * truth.select(today.patients).patients.alpha
    now = truth.volumes_cm3[:500, 54]
    alive = treated[:, 1] > SMALLEST_CM3
    np.testing.assert_allclose(((none - treated)[:, 1] / now)[alive], kill[alive], rtol=1e-6)


def test_times_that_the_world_does_not_have_are_refused(randomised):
    today = randomised.cohort.until(54.0)[:3]
    with pytest.raises(cp.CohortError, match="multiples of 1 days"):
        randomised.truth.outcomes(today, Plan.none(), np.array([0.5]))
    with pytest.raises(cp.CohortError, match="The world ends on day 59"):
        randomised.truth.outcomes(today, Plan.none(), np.array([6.0]))
    with pytest.raises(cp.CohortError, match="multiples of 1 days"):
        randomised.truth.outcomes(today, Plan.dose("chemotherapy", at=0.25), np.array([1.0]))


def test_the_other_arm_has_the_same_patients_and_new_noise(arms):
    other = arms.other_arm(seed=9)
    np.testing.assert_array_equal(other.truth.arm, 1 - arms.truth.arm)
    np.testing.assert_array_equal(other.truth.patients.rho, arms.truth.patients.rho)
    np.testing.assert_array_equal(other.truth.volumes_cm3[:, 0], arms.truth.volumes_cm3[:, 0])
    assert (other.truth.noise != arms.truth.noise).all()
    with pytest.raises(cp.CohortError, match="no other arm"):
        cp.simulate_tumor_growth(5).other_arm(seed=0)


def test_the_continuous_variant_converges_to_itself():
    """The same Brownian path on steps of h, h/2 and h/4: each halving halves the error (strong order 1/2 to 1)."""
    people = draw_patients(300, np.random.default_rng(7))
    fine = np.random.default_rng(8).standard_normal((300, 5 * 160)) * math.sqrt(1 / 160)
    ends = []
    for factor in (1, 2, 4, 8):
        h = factor / 160
        increments = fine.reshape(300, -1, factor).sum(axis=2)
        volume = people.initial_volume_cm3
        for step in range(increments.shape[1]):
            volume = grow(
                volume,
                patients=people,
                concentration=np.full(300, 5.0 * 0.5 ** (step * h)),
                radio_gy=np.full(300, 2.0 if step * h == 1.0 else 0.0),
                noise=0.01 * increments[:, step],
                gone=np.full(300, 0.9),
                step_days=h,
                daily=False,
            )
        ends.append(np.log(volume))
    errors = [np.abs(ends[i] - ends[0]).mean() for i in (1, 2, 3)]
    assert errors[0] < 0.6 * errors[1] < 0.6 * 0.6 * errors[2] * 1.2
    assert errors[2] < 0.01


def test_daily_statistics_of_the_continuous_variant_resemble_the_daily_maps(continuous):
    daily = cp.simulate_tumor_growth(2_000, seed=3).truth
    step = continuous.truth.settings.step_of(np.array([9.0]))[0]
    a, b = daily.volumes_cm3[:, 9], continuous.truth.volumes_cm3[:, step]
    assert np.median(a) == pytest.approx(np.median(b), rel=0.05)
    apart = np.abs(np.log(a) - np.log(b))  # same patients, before any treatment; noise of nine days is 0.03
    assert np.median(apart) < 0.05
    assert apart.max() < 0.4
    doses = continuous.truth.given.sum(axis=1).mean(axis=0)
    np.testing.assert_allclose(doses, daily.given.sum(axis=1).mean(axis=0), rtol=0.05)
    times = continuous.cohort.records.times
    assert (times != np.round(times)).mean() > 0.8


def test_no_tumour_leaves_the_simulators_range(arms, randomised, continuous):
    for simulation in (arms, randomised, continuous):
        volumes = simulation.truth.volumes_cm3
        assert np.isfinite(volumes).all()
        assert volumes.min() >= SMALLEST_CM3
        assert volumes.max() < CAPACITY_CM3 * 1.2


def test_the_cohort_does_not_hold_the_truth(randomised):
    cohort, truth = randomised.cohort, randomised.truth
    assert cohort.records.rows == truth.observed.sum()
    assert [v.name for v in cohort.schema.static] == ["subgroup"]
    assert [t.name for t in cohort.schema.treatments] == ["chemotherapy", "radiotherapy"]
    assert cohort.schema.randomised
    np.testing.assert_array_equal(cohort.records.values[:, 0], truth.volumes_cm3[truth.observed])


def test_a_study_in_which_one_treatment_never_came_still_knows_it():
    sequential = cp.simulate_tumor_growth(1, seed=0, assignment="arms")
    assert [t.name for t in sequential.cohort.schema.treatments] == ["chemotherapy", "radiotherapy"]


def test_simulated_tables_can_be_written_and_read(randomised, tmp_path):
    randomised.cohort[:50].save(tmp_path / "tumours")
    assert read_cohort(tmp_path / "tumours").equals(randomised.cohort[:50])


def test_what_cannot_be_simulated_is_said(checker_off):
    with pytest.raises(cp.CohortError, match="arms, randomised, confounded"):
        cp.load_tumor_growth(5, assignment="random")
    with pytest.raises(cp.CohortError, match="patients=0"):
        cp.load_tumor_growth(0)
    with pytest.raises(cp.CohortError, match="no seed for 'visit'"):
        cp.simulate_tumor_growth(5, seeds={"visit": 1})


def test_positive_normals_are_the_law_they_should_be(people):
    """The chance that chemotherapy's parameter is below its mean is one half: the truncation is far away."""
    below = (people.chemo_kill[people.subgroup != 2] < 0.028).astype(float)
    assert within_three_errors(below, norm.cdf(0.0))


def test_truth_can_be_had_for_some_patients_in_any_order(randomised):
    some = randomised.truth.select(pl.Series([7, 3]))
    np.testing.assert_array_equal(some.volumes_cm3, randomised.truth.volumes_cm3[[7, 3]])
    np.testing.assert_array_equal(some.patients.rho, randomised.truth.patients.rho[[7, 3]])


@pytest.mark.parametrize("fixture", ["arms", "randomised", "continuous"])
def test_a_simulated_cohort_passes_its_own_check(fixture, request):
    report = request.getfixturevalue(fixture).cohort.check()
    assert report.ok
    assert {finding.code for finding in report.of("warning")} <= {"always_given", "shared_cells", "near_coincident"}
