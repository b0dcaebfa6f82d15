"""What training has seen of situations like a patient's: counts, ranges, warnings; and whom to hand over."""

import warnings

import numpy as np
import polars as pl
import pytest

import counterpath as cp
from counterpath.predictive import Experience, support_of
from counterpath.predictive.experience import LEVELS, classes_given, given_lately

HORIZONS = np.arange(1.0, 6.0)
BOTH_EVERY_DAY = cp.Plan.repeat("chemotherapy", every=1.0, times=5) + cp.Plan.repeat("radiotherapy", every=1.0, times=5)


@pytest.fixture(scope="module", params=["arms", "randomised"])
def study(request):
    """Training patients, and others on day 54."""
    train, test = (cp.simulate_tumor_growth(n, seed=seed, assignment=request.param) for n, seed in ((300, 5), (60, 6)))
    return request.param, train, test, test.cohort.until(54.0)


def windows(train, today, plan):
    schema = train.cohort.schema
    return support_of(Experience.of(train.cohort, 5.0), schema, today, plan, HORIZONS).windows


def plan_of_the_other_arm(test, today):
    """From day 54, what patients of the other arm get then."""
    other = test.other_arm(seed=9)
    followed = cp.Plan.observed(other.cohort).resolve(other.cohort.until(54.0))
    names = [treatment.name for treatment in today.schema.treatments]
    plans = {}
    for number, patient in enumerate(today.patients):
        rows = range(followed.offsets[number], followed.offsets[number + 1])
        doses = [cp.Plan.dose(names[followed.treatment[r]], followed.start[r], followed.amount[r]) for r in rows]
        plans[patient] = sum(doses, start=cp.Plan.none())
    return cp.Plan.per_patient(plans)


# Two small studies


def test_what_patients_really_got_was_seen_before(study):
    _, train, test, today = study
    found = windows(train, today, cp.Plan.observed(test.cohort))
    assert (found > 0).mean() > 0.97
    assert np.median(found) > 50


def test_in_two_arms_the_plan_of_the_other_arm_was_never_observed(study):
    assignment, train, test, today = study
    if assignment == "arms":
        found = windows(train, today, plan_of_the_other_arm(test, today))
        np.testing.assert_array_equal(found[:, 2:], 0)  # doses of day 56 are within three days
    else:  # the same plans, in a study where every day was decided at random
        for plan in (
            cp.Plan.dose("radiotherapy", 2.0),
            cp.Plan.dose("chemotherapy", 2.0) + cp.Plan.dose("radiotherapy", 2.0),
        ):
            assert (windows(train, today, plan) > 0).mean() > 0.99


def test_both_treatments_every_day_were_never_observed(study):
    _, train, _, today = study
    found = support_of(Experience.of(train.cohort, 5.0), train.cohort.schema, today, BOTH_EVERY_DAY, HORIZONS)
    assert found.never_observed[:, 2:].all()
    assert found.warning.startswith("never observed for all patients")


def test_more_than_ever_and_doses_outside_are_told_from_the_plan_alone(study):
    _, train, _, today = study
    experience = Experience.of(train.cohort, 5.0)
    highest = train.cohort.schema.treatments[0].dose.highest
    plan = cp.Plan.dose("chemotherapy", 2.5, dose=3 * highest)
    with pytest.warns(cp.UnseenDoseWarning):
        plan.resolve(today)
    found = support_of(experience, train.cohort.schema, today, plan, HORIZONS)
    np.testing.assert_array_equal(found.dose_outside.all(axis=0), HORIZONS > 2.5)
    assert not found.dose_outside[:, HORIZONS < 2.5].any()
    often = support_of(
        experience, train.cohort.schema, today, cp.Plan.repeat("chemotherapy", every=0.2, times=25), HORIZONS
    )
    assert often.more_than_ever.all()
    assert not often.dose_outside.any()
    assert not found.longer_unseen.any()


# Classes by hand


@pytest.fixture(scope="module")
def hand_made():
    """Three patients: doses of 2 mg on days 1, 3 and 8; a running infusion; nothing."""
    observations = pl.DataFrame({"patient": np.repeat(["a", "b", "c"], 2), "time": [0.0, 20.0] * 3, "y": 1.0})
    treatments = pl.DataFrame(
        {
            "patient": ["a", "a", "a", "b"],
            "treatment": ["drug", "drug", "drug", "drip"],
            "start": [1.0, 3.0, 8.0, 5.0],
            "stop": [None, None, None, 15.0],
            "dose": [2.0, 2.0, 2.0, None],
            "rate": [None, None, None, 4.0],
        }
    )
    return cp.Cohort.from_tables(observations, treatments, outcome="y", time_unit="day")


def test_doses_add_up_and_rates_are_averaged(hand_made):
    edges = np.array([0.5, 1.5, 2.5])
    start = np.full((3, 3), 1.0)
    stop = start + np.array([2.0, 2.1, 8.0])
    found = classes_given(hand_made.schema.treatments, hand_made.events, start, stop, edges)
    names = [treatment.name for treatment in hand_made.schema.treatments]
    drug, drip = found[..., names.index("drug")], found[..., names.index("drip")]
    # From day 1 until just before day 3 there is one dose, until 3.1 there are two, until day 9 three.
    np.testing.assert_array_equal(drug, [[2, 3, 4], [0, 0, 0], [0, 0, 0]])
    # Half of the time from day 1 to day 9 at the usual rate.
    np.testing.assert_array_equal(drip, [[0, 0, 0], [0, 0, 2], [0, 0, 0]])


def test_what_was_given_lately_or_else_how_long_ago(hand_made):
    now = np.tile([1.0, 9.0, 17.0, 21.0, 40.0], (3, 1))
    found = given_lately(hand_made, now, within=4.0)
    names = [treatment.name for treatment in hand_made.schema.treatments]
    # Never; one dose in four days; nothing for nine days (within four fours), for 13, and for longer.
    np.testing.assert_array_equal(found[0, :, names.index("drug")], [-4, 2, -2, -2, -3])
    np.testing.assert_array_equal(found[1, :, names.index("drip")], [-4, 2, 2, -1, -3])
    assert (found[2] == -4).all()


@pytest.mark.parametrize("patients", [1, 7])
def test_windows_are_counted_once_each(patients):
    cohort = cp.simulate_tumor_growth(patients, seed=2).cohort
    experience = Experience.of(cohort, 5.0)
    for number, windows_there in enumerate(experience.windows):
        assert experience.counts[experience.situations[:, 0] == number].sum() == windows_there
    assert (np.diff(experience.windows) <= 0).all()


def test_a_cohort_without_treatments_has_one_situation():
    cohort = cp.Cohort.from_tables(
        pl.DataFrame({"patient": ["a"] * 3, "time": [0.0, 4.0, 9.0], "y": 1.0}), outcome="y", time_unit="day"
    )
    found = support_of(Experience.of(cohort, 5.0), cohort.schema, cohort, cp.Plan.none(), np.array([2.0, 5.0]))
    assert (found.windows > 0).all()
    assert found.warning == ""


def test_patients_who_were_not_seen_for_longer_than_anybody_in_training():
    cohort = cp.simulate_tumor_growth(20, seed=2).cohort
    experience = Experience.of(cohort, 5.0)
    for more, longer in ((experience.longest_unseen - 0.1, False), (experience.longest_unseen + 0.1, True)):
        one = pl.DataFrame({"patient": ["x"], "time": [0.0], "tumor_volume": [10.0]})
        static = pl.DataFrame({"patient": ["x"], "subgroup": cohort.static["subgroup"][:1], "follow_up_end": [more]})
        waited = cp.Cohort.from_tables(one, None, static, like=cohort)
        found = support_of(experience, cohort.schema, waited, cp.Plan.none(), np.array([1.0]))
        assert found.longer_unseen.all() == longer


# The spread of a model's means


def test_ranks_are_shares_of_validation_windows_of_about_the_same_horizon():
    experience = Experience.of(cp.simulate_tumor_growth(5, seed=2).cohort, 5.0)
    elapsed = np.repeat([1.0, 5.0], 1_000)
    spread = np.concatenate([np.linspace(0, 1, 1_000), np.linspace(0, 10, 1_000)])[:, None]
    known = experience.with_spread(elapsed, spread)
    asked = np.array([[[0.25], [0.25]], [[2.0], [7.5]]])
    found = known.spread_rank(asked, np.array([0.7, 4.9]))
    np.testing.assert_allclose(found, [[0.25, 0.02], [0.99, 0.75]], atol=0.011)  # levels are a hundredth apart
    assert np.isnan(experience.spread_rank(asked, np.array([0.7, 4.9]))).all()
    assert known.usual_spread.shape == (5, 1, len(LEVELS))


def test_an_outcome_that_no_validation_patient_had_has_no_rank():
    experience = Experience.of(cp.simulate_tumor_growth(5, seed=2).cohort, 5.0)
    known = experience.with_spread(np.ones(200), np.full((200, 1), np.nan))
    assert np.isnan(known.spread_rank(np.ones((3, 2, 1)), np.array([1.0, 5.0]))).all()


# Whom to hand to somebody else


@pytest.fixture(scope="module")
def predicted():
    train, test = (cp.simulate_tumor_growth(n, seed=seed, assignment="arms").cohort for n, seed in ((60, 5), (20, 6)))
    model = cp.LastValue(5.0).fit(train)
    return model, test.until(54.0), test


def test_those_never_observed_are_deferred_first_then_the_widest(predicted):
    model, today, _ = predicted
    plan = cp.Plan.per_patient(
        {
            p: cp.Plan.repeat("chemotherapy", every=1.0, times=5) if i < 3 else cp.Plan.none()
            for i, p in enumerate(today.patients)
        }
    )
    prediction = model.predict(today, plan, horizons=[2.0])
    frame = prediction.defer(0.8)
    unseen = prediction.support.never_observed[:, 0]
    deferred = frame["deferred"].to_numpy()
    assert deferred.sum() == 16
    assert 3 <= unseen.sum() < 16
    assert deferred[unseen].all()
    assert set(frame["reason"].to_numpy()[unseen]) == {"never observed"}
    width = frame["width"].to_numpy()
    assert width[deferred & ~unseen].min() >= width[~deferred].max()
    assert set(frame["reason"].to_numpy()[deferred & ~unseen]) == {"among the least certain"}
    assert not prediction.defer(0.0)["deferred"].any()
    assert prediction.defer(1.0)["deferred"].all()


@pytest.mark.parametrize("share", [-0.1, 1.1, 10])
def test_a_share_is_a_share(predicted, share):
    model, today, _ = predicted
    with pytest.raises(ValueError, match="not between 0 and 1"):
        model.predict(today, cp.Plan.none(), horizons=[1.0]).defer(share)


# Beside every answer


def test_predictions_have_their_support_beside_them(predicted):
    model, today, test = predicted
    prediction = model.predict(today, cp.Plan.observed(test), horizons=[1.0, 5.0])
    np.testing.assert_array_equal(prediction.summary()["support"].to_numpy(), prediction.support.windows.ravel())
    assert {"dose_outside", "more_than_ever", "longer_unseen", "spread_rank"} <= set(prediction.to_frame().columns)
    kept = model.predict(today, cp.Plan.observed(test), horizons=[1.0, 5.0], keep="summary")
    np.testing.assert_array_equal(kept.support.windows, prediction.support.windows)


def test_patients_with_other_treatments_have_no_support(predicted):
    model, _, _ = predicted
    one = pl.DataFrame({"patient": ["x"], "time": [0.0], "tumor_volume": [10.0]})
    other = cp.Cohort.from_tables(one, outcome="tumor_volume", time_unit="day")
    assert model.predict(other, cp.Plan.none(), horizons=[1.0]).support is None


def test_an_effect_without_support_carries_a_warning(predicted):
    model, today, test = predicted
    seen = cp.Plan.observed(test)
    with pytest.warns(cp.UnsupportedPlanWarning, match="never observed for all patients"):
        effect = model.effect(today, BOTH_EVERY_DAY, versus=seen, horizons=[4.0])
    assert "never observed for all patients" in effect.label
    assert (effect.summary()["support"] == 0).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        against = model.effect(today, seen, versus=seen, horizons=[4.0])
    assert "never" not in against.label


def test_a_ranking_says_which_plan_was_never_observed(predicted):
    model, today, test = predicted
    plans = {"as given": cp.Plan.observed(test), "everything": BOTH_EVERY_DAY}
    with pytest.warns(cp.UnsupportedPlanWarning, match="Plan 'everything'"):
        ranking = model.rank(today, plans, better="lower", horizons=[4.0])
    support = ranking.summary()["support"].to_numpy().reshape(-1, 2)
    assert (support[:, 0] > 0).all()
    assert (support[:, 1] == 0).all()
