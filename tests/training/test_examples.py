from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest
from small_models import small_bncde

import counterpath as cp
from counterpath.cohort.cuts import events_from
from counterpath.estimators.neural import DATA_SEED
from counterpath.paths import control_path
from counterpath.training import Clock, tabulate
from counterpath.training.cut_times import candidate_cuts

pytestmark = pytest.mark.slow  # networks are compiled

HORIZON = 5.0
DAILY = cp.simulate_tumor_growth(30, seed=0).cohort
CONTINUOUS = cp.simulate_tumor_growth(30, seed=0, continuous=True).cohort
SCALES = ("first_scale", "step_scale", "plan_step_scale", "plan_level_scale")
COHORTS = {"daily": DAILY, "continuous": CONTINUOUS}


def prepared(cohort, **options):
    """A model that has its grids, scales and network, and is not trained; these tests are about arrays."""
    model = small_bncde(**options)
    model.tabulation_ = model.new_tabulation(cohort)
    model.networks_ = (model.new_network(model.tabulation_, model.seed),)
    return model


def cuts_of(cohort, model, cuts="many"):
    """The candidates that `examples_of` uses."""
    return candidate_cuts(cohort, model.tabulation_.grid, HORIZON, cuts, np.random.default_rng(0))


def examples_of(cohort, model, cuts="many"):
    return tabulate(cohort, model.tabulation_, cuts=cuts, rng=np.random.default_rng(0))


def first_and_last(cohort):
    records = cohort.records  # the simulated outcome is in every record
    return records.times[records.offsets[:-1]], records.times[records.offsets[1:] - 1]


def without_records_but(cohort, patient, number):
    """The same cohort, in which one patient has only so many records."""
    records = cohort.records
    place = np.arange(records.rows) - records.offsets[records.patient_of_row]
    return replace(cohort, records=records.keep((records.patient_of_row != patient) | (place < number)))


# Where trajectories are cut


def test_cuts_of_a_daily_study_are_the_days_after_which_an_outcome_follows():
    found = cuts_of(DAILY, prepared(DAILY))
    for patient in range(len(DAILY)):
        times = DAILY.records.times[DAILY.records.patient_of_row == patient]
        days = np.arange(times[0], times[-1])
        useful = [day for day in days if np.any((times > day) & (times <= day + HORIZON))]
        np.testing.assert_array_equal(found.times[patient, found.is_real[patient]], useful)


def test_cuts_of_a_continuous_study_lie_in_each_patients_record_at_visits_and_between():
    found = cuts_of(CONTINUOUS, prepared(CONTINUOUS))
    first, last = first_and_last(CONTINUOUS)
    assert np.all((found.times >= first[:, None]) & (found.times < last[:, None]))
    assert found.number.min() >= 2
    at_visits = np.isin(found.times[found.is_real], CONTINUOUS.records.times).mean()
    assert 0.2 < at_visits < 0.8


@pytest.mark.parametrize("cohort", COHORTS.values(), ids=COHORTS)
def test_the_last_cut_is_a_horizon_before_the_last_outcome_or_at_the_first_record(cohort):
    short = without_records_but(cohort, 3, 2)  # and these two are less than a horizon apart
    found = cuts_of(short, prepared(cohort), cuts="last")
    first, last = first_and_last(short)
    assert last[3] - first[3] < HORIZON
    np.testing.assert_array_equal(found.times[:, 0], np.maximum(last - HORIZON, first))
    np.testing.assert_array_equal(found.number, 1)
    np.testing.assert_allclose(
        found.elapsed[:, 0].max(axis=1, where=found.present[:, 0], initial=0), last - found.times[:, 0]
    )


# What counts, and how much


@pytest.mark.parametrize("cohort", COHORTS.values(), ids=COHORTS)
def test_every_outcome_after_the_first_record_counts_once_and_the_first_not_at_all(cohort):
    model = prepared(cohort)
    found, shares = cuts_of(cohort, model), examples_of(cohort, model).targets.shares
    total = np.bincount(found.row.ravel(), np.asarray(shares, dtype=np.float64).ravel(), minlength=cohort.records.rows)
    expected = np.ones(cohort.records.rows)
    expected[cohort.records.offsets[:-1]] = 0.0
    np.testing.assert_allclose(total, expected, atol=1e-6)
    assert examples_of(cohort, model).outcomes == cohort.records.rows - len(cohort)


def without_outcomes_of(cohort, patient):
    """The same cohort, in which one patient has visits and no outcome."""
    values = np.where((cohort.records.patient_of_row == patient)[:, None], np.nan, cohort.records.values)
    return replace(cohort, records=replace(cohort.records, values=values))


USELESS = {"one record": without_records_but(DAILY, 3, 1), "no outcome": without_outcomes_of(DAILY, 3)}


@pytest.mark.parametrize("cuts", ["many", "last"])
@pytest.mark.parametrize("cohort", USELESS.values(), ids=USELESS)
def test_a_patient_without_a_useful_cut_contributes_nothing(cohort, cuts):
    """Nobody else changes, and nothing is NaN."""
    model = prepared(DAILY)
    examples, whole = examples_of(cohort, model, cuts), examples_of(DAILY, model, cuts)
    assert examples.targets.cuts[3] == 0
    assert not np.any(examples.targets.shares[3])
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((examples.inputs, examples.targets)))
    others = np.delete(np.arange(len(DAILY)), 3)
    np.testing.assert_array_equal(examples.targets.shares[others], whole.targets.shares[others])
    np.testing.assert_array_equal(examples.inputs.steps[others], whole.inputs.steps[others])


def test_a_patient_without_a_useful_cut_has_no_window_of_their_own():
    model = prepared(DAILY, interpolation="hermite")
    found = cuts_of(DAILY, model)
    examples = examples_of(without_records_but(DAILY, 3, 1), model)
    assert examples.patients == found.number.sum() - found.number[3]


# Training sees what prediction sees


def predicted_inputs(model, cohort, patient, found, cut):
    """What `predict` makes of the same patient at the same time."""
    history = cohort[[patient]].until(found.times[patient, cut])
    asked = found.elapsed[patient, cut, found.present[patient, cut]]
    return model._inputs(history, cp.Plan.observed(cohort).resolve(history), asked[None])


@eqx.filter_jit
def hidden_at_cuts(model_network, inputs, clock):
    weights = model_network.draw_weights(jax.random.key(0)[None], clock.history, clock.plan)
    of_draws = jax.vmap(model_network.hidden_at_cuts, in_axes=(None, weights.draw_axes, None))
    return of_draws(inputs, weights, clock.history)[0, 0]


def only(inputs, row, cut):
    """One patient with one cut."""
    own = jax.tree.map(lambda leaf: leaf[row : row + 1], inputs)

    def at_cut(i):
        return [i.cut_step, i.cut_increments, i.plan_steps, i.horizon_step, i.horizon_increments, i.hints]

    return eqx.tree_at(at_cut, own, replace_fn=lambda leaf: leaf[:, cut : cut + 1])


def assert_same_plan(trained, predicted, number):
    np.testing.assert_array_equal(trained.plan_steps, predicted.plan_steps)
    np.testing.assert_array_equal(trained.horizon_step[..., :number], predicted.horizon_step)
    np.testing.assert_array_equal(trained.horizon_increments[..., :number, :], predicted.horizon_increments)
    np.testing.assert_allclose(trained.hints[..., :number, :], predicted.hints, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cohort", COHORTS.values(), ids=COHORTS)
def test_many_cuts_in_one_window_lead_to_the_states_that_prediction_starts_from(cohort):
    model = prepared(cohort)
    found, examples = cuts_of(cohort, model), examples_of(cohort, model)
    inputs, targets = examples.inputs, examples.targets
    clock = Clock.of(model.tabulation_)
    for patient, share in [(0, 0.0), (7, 0.3), (12, 0.7), (29, 1.0)]:
        cut = int(share * (found.number[patient] - 1))
        trained = only(inputs, patient, cut)
        predicted, begin = predicted_inputs(model, cohort, patient, found, cut)
        number = found.present[patient, cut].sum()
        assert_same_plan(trained, predicted, number)
        later = model.tabulation_.scaler.values(cohort.records.values[found.row[patient, cut, :number]])[:, :1]
        changes = (later - begin.start[0, 0, :number]) / begin.units[0, 0, :number]
        np.testing.assert_allclose(targets.changes[patient, cut, :number], changes, rtol=1e-4, atol=1e-5)  # float32
        states = [hidden_at_cuts(model.networks_[0], i, clock) for i in (trained, predicted)]
        np.testing.assert_allclose(*states, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{"interpolation": "rectilinear"}, {"interpolation": "hermite"}, {"lookback": 10.0}]
)
def test_windows_of_their_own_are_those_of_prediction_to_the_bit(options):
    model = prepared(CONTINUOUS, **options)
    found, examples = cuts_of(CONTINUOUS, model), examples_of(CONTINUOUS, model)
    rows = np.argwhere(found.is_real)
    assert examples.patients == len(rows)
    for row in np.linspace(0, len(rows) - 1, 6).astype(int):
        patient, cut = rows[row]
        trained = only(examples.inputs, row, 0)
        predicted, begin = predicted_inputs(model, CONTINUOUS, patient, found, cut)
        assert_same_plan(trained, predicted, found.present[patient, cut].sum())
        np.testing.assert_array_equal(trained.first, predicted.first)
        np.testing.assert_array_equal(trained.steps, predicted.steps)
        target = model.tabulation_.scaler.values(CONTINUOUS.records.values[found.row[patient, cut, :1]])[:, 0]
        change = (target - begin.start[0, 0, 0]) / begin.units[0, 0, 0]
        np.testing.assert_allclose(examples.targets.changes[row, 0, 0], change, rtol=1e-4, atol=1e-5)  # float32


def test_outcomes_later_than_a_short_lookback_are_learnt_from():
    model = prepared(DAILY, lookback=10.0)
    found, examples = cuts_of(DAILY, model), examples_of(DAILY, model)
    patient, cut = np.nonzero(found.is_real)
    start = first_and_last(DAILY)[0][patient]
    late = found.times[patient, cut] - start > 10.0
    assert late.mean() > 0.5
    assert np.all(np.asarray(examples.targets.shares[late]).sum(axis=(1, 2, 3)) > 0)


# The state that carries the path


@pytest.mark.parametrize("cohort", COHORTS.values(), ids=COHORTS)
def test_the_carried_part_of_the_state_at_a_cut_is_the_path_there(cohort):
    """X(cut) in units of the usual size of each channel, and after it what is static."""
    model = prepared(cohort)
    tabulation, clock = model.tabulation_, Clock.of(model.tabulation_)
    found, inputs = cuts_of(cohort, model), examples_of(cohort, model).inputs
    start = first_and_last(cohort)[0]
    path = control_path(cohort, tabulation.scaler, tabulation.grid, window_start=start, response=tabulation.response)
    channels = len(path.channels)
    expected = path.values(found.times) / tabulation.first_scale[:channels]
    for patient in (0, 11, 29):
        states = hidden_at_cuts(
            model.networks_[0], jax.tree.map(lambda leaf, p=patient: leaf[p : p + 1], inputs), clock
        )
        carried = states[:, model.architecture.hidden :]
        # Sixty sums in single precision.
        np.testing.assert_allclose(carried[:, :channels], expected[patient], rtol=1e-3, atol=2e-4)
        static = np.broadcast_to(inputs.first[patient, channels:], carried[:, channels:].shape)
        np.testing.assert_array_equal(carried[:, channels:], static)


@pytest.mark.parametrize("cohort", COHORTS.values(), ids=COHORTS)
def test_what_is_carried_has_size_one_over_the_window_and_over_the_plan(cohort):
    """Root mean square of what is not zero; what is static counts where the window starts."""
    model = prepared(cohort)
    found = candidate_cuts(cohort, model.tabulation_.grid, HORIZON, "many", np.random.default_rng([DATA_SEED, 0]))
    plain = replace(model.tabulation_, **{name: np.ones_like(getattr(model.tabulation_, name)) for name in SCALES})
    history = plain.windows(cohort, found.times)
    channels = history.steps.shape[-1]
    levels = history.first[:, None, :channels] + np.cumsum(history.steps, axis=1)
    given = cohort.events.take(np.repeat(np.arange(len(cohort)), found.times.shape[1]))
    plan = plain.plans(events_from(given, found.times.ravel()), found.elapsed.reshape(found.times.size, -1))
    for values, scale in (
        (levels, model.tabulation_.first_scale[:channels]),
        (history.first[:, channels:], model.tabulation_.first_scale[channels:]),
        (np.cumsum(plan.steps, axis=1), model.tabulation_.plan_level_scale),
    ):
        flat = (values / scale).reshape(-1, len(scale))
        moved = np.count_nonzero(flat, axis=0)
        size = np.sqrt(np.sum(flat**2, axis=0) / np.maximum(moved, 1))
        np.testing.assert_allclose(size, moved > 0, rtol=1e-9)
        assert np.mean(moved > 0) > 0.5


@pytest.mark.parametrize("plain_path", [True, False])
def test_a_plain_path_is_not_carried(plain_path):
    fields = prepared(DAILY, plain_path=plain_path).networks_[0]
    assert (fields.encoder_field.carry is None) == plain_path
    assert (fields.decoder_field.carry is None) == plain_path


# Nothing after a cut enters


def changed_after(cohort, time):
    """Whatever was measured later is another value, at the same time."""
    records = cohort.records
    values = records.values.copy()
    values[records.times > time] *= 3.0
    return replace(cohort, records=replace(records, values=values))


def test_later_records_do_not_change_a_cut_in_a_shared_window():
    """Up to the cut's own step the arrays are the same to the bit, and so is its state."""
    model = prepared(DAILY)
    found, clock = cuts_of(DAILY, model), Clock.of(model.tabulation_)
    before, after = (examples_of(cohort, model).inputs for cohort in (DAILY, changed_after(DAILY, 30.0)))
    for patient in (2, 5, 20):
        cut = int(np.flatnonzero(found.times[patient] == 30.0)[0])
        ours, theirs = only(before, patient, cut), only(after, patient, cut)
        step = int(ours.cut_step[0, 0])
        assert np.any(ours.steps[:, step + 1 :] != theirs.steps[:, step + 1 :])  # they were changed indeed
        np.testing.assert_array_equal(ours.first, theirs.first)
        np.testing.assert_array_equal(ours.steps[:, :step], theirs.steps[:, :step])
        np.testing.assert_array_equal(ours.cut_increments, theirs.cut_increments)
        assert_same_plan(ours, theirs, None)
        np.testing.assert_array_equal(*(hidden_at_cuts(model.networks_[0], i, clock) for i in (ours, theirs)))


@pytest.mark.parametrize("interpolation", ["rectilinear", "linear", "hermite"])
def test_later_records_do_not_change_a_window_of_its_own(interpolation):
    model = prepared(DAILY, interpolation=interpolation)
    found = cuts_of(DAILY, model)
    before, after = (examples_of(cohort, model).inputs for cohort in (DAILY, changed_after(DAILY, 30.0)))
    early = found.times[found.is_real] <= 30.0
    for ours, theirs in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(ours[early], theirs[early])
    assert np.any(before.steps[~early] != after.steps[~early])
