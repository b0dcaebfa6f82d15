import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpath.cohort import Cohort, Grid, Scaler, fit_scaler
from counterpath.cohort.scaling import Scale
from counterpath.cohort.schema import Amounts, Schema, Treatment, Variable
from counterpath.paths import INTERPOLATIONS, control_path
from counterpath.paths.channels import ANSWERS, history_channels, plan_channels

GRID = Grid(np.array([0.0, 1.0, 3.0, 10.0]))


@pytest.fixture
def cohort() -> Cohort:
    """A covariate `time` beside the clock, and `insulin` as a lab value and as a drug."""
    observations = pl.DataFrame(
        {
            "id": [1, 1, 1],
            "day": [0.0, 2.0, 6.0],
            "y": [1.0, 2.0, 4.0],
            "time": [7.0, 8.0, 9.0],
            "insulin": [3.0, 5.0, 6.0],
        }
    )
    treatments = pl.DataFrame({"id": [1], "treatment": ["insulin"], "start": [1.0], "dose": [10.0]})
    return Cohort.from_tables(
        observations, treatments, outcome="y", patient="id", time="day", time_unit="day", time_zero="as given"
    )


def unscaled(cohort) -> Scaler:
    fitted = fit_scaler(cohort, transform="standard")
    return fitted.model_copy(update={"variables": tuple(Scale(name=s.name) for s in fitted.variables)})


def values_of(cohort, interpolation, time):
    path = control_path(cohort, unscaled(cohort), GRID, window_start=np.zeros(1), interpolation=interpolation)
    return dict(zip(path.channels, path.values(np.array([[time]]))[0, 0], strict=True))


def test_the_channels_of_a_schema_in_order(cohort):
    outcome = ["y", "y:slope", "y:since", "y:unseen", "y:timing"]
    answers = ["y:insulin:answered", "y:insulin:response", "y:insulin:exposure"]
    counts = ["y:count", "time:count", "insulin:count"]
    drug = ["insulin:count:given", "insulin:dose", "insulin:timing"]
    names = [channel.name for channel in history_channels(cohort.schema)]
    linear = ["y:drift", "y:insulin:effect"]
    assert names == ["time", *outcome, *answers, *linear, "time:value", "insulin", *counts, *drug]
    assert [channel.name for channel in plan_channels(cohort.schema)] == ["elapsed", "insulin:count", *drug[1:]]


def test_only_treatments_with_doses_have_a_timing():
    amounts = Amounts(usual=1.0, lowest=1.0, highest=1.0)
    kinds = {"pill": (amounts, None), "drip": (None, amounts), "both": (amounts, amounts)}
    treatments = tuple(Treatment(name=name, dose=dose, rate=rate) for name, (dose, rate) in kinds.items())
    schema = Schema(time_unit="day", time_column="day", outcomes=(Variable(name="y"),), treatments=treatments)
    for channels in (history_channels(schema), plan_channels(schema)):
        timed = [channel.name for channel in channels if channel.role == "timing" and channel.treatment is not None]
        assert timed == ["pill:timing", "both:timing"]


def test_every_outcome_answers_to_every_treatment():
    amounts = Amounts(usual=1.0, lowest=1.0, highest=1.0)
    treatments = tuple(Treatment(name=name, dose=amounts) for name in ("a", "b", "c"))
    outcomes = tuple(Variable(name=name) for name in ("y", "z"))
    schema = Schema(time_unit="day", time_column="day", outcomes=outcomes, treatments=treatments)
    found = [(c.role, c.variable, c.treatment) for c in history_channels(schema) if c.role in ANSWERS]
    assert found == [(role, j, code) for j in range(2) for code in range(3) for role in ANSWERS]


def test_names_that_would_coincide_say_what_they_are(cohort):
    names = [channel.name for channel in history_channels(cohort.schema)]
    assert len(set(names)) == len(names)
    assert {"time", "time:value", "insulin", "insulin:count", "insulin:count:given", "insulin:dose"} <= set(names)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_channels_of_one_name_keep_their_own_values(cohort, interpolation):
    found = values_of(cohort, interpolation, 6.0)
    assert found["time"] == pytest.approx(0.6)
    assert found["time:value"] == 9.0
    assert found["insulin"] == 6.0
    assert (found["insulin:count"], found["insulin:count:given"], found["insulin:dose"]) == (3.0, 1.0, 1.0)


def test_smooth_paths_interpolate_the_covariate_and_not_the_clock(cohort):
    found = values_of(cohort, "linear", 4.0)
    assert found["time"] == pytest.approx(0.4)
    assert found["time:value"] == 8.5


def test_rectilinear_moves_the_clock_and_not_the_covariate_called_time(cohort):
    path = control_path(cohort, unscaled(cohort), GRID, window_start=np.zeros(1), interpolation="rectilinear")
    moved = path.moved_in_time(np.array([[1.0]]), np.array([[3.0]]))
    assert moved is not None
    found = dict(zip(path.channels, moved[0, 0], strict=True))
    assert found["time"] == pytest.approx(0.3)
    assert found["time:value"] == 7.0


NAMES = st.sampled_from(
    ["time", "elapsed", "a", "a:count", "a:slope", "a:count:given", "b=x", "b", "a:dose", "a:value"]
)


@given(st.lists(NAMES, min_size=1, unique=True), st.lists(NAMES, unique=True), st.integers(1, 3))
def test_names_are_unique_whatever_things_are_called(variables, treatments, outcomes):
    amounts = Amounts(usual=1.0, lowest=1.0, highest=1.0)
    schema = Schema(
        time_unit="day",
        time_column="day",
        outcomes=tuple(Variable(name=name) for name in variables[:outcomes]),
        covariates=tuple(
            Variable(name=name, kind="categorical", levels=("x", "y")) if name == "b" else Variable(name=name)
            for name in variables[outcomes:]
        ),
        treatments=tuple(Treatment(name=name, dose=amounts, rate=amounts) for name in treatments),
    )
    for channels in (history_channels(schema), plan_channels(schema)):
        assert len({channel.name for channel in channels}) == len(channels)
        assert sum(channel.role == "time" for channel in channels) == 1
        assert sum(channel.role == "given" for channel in channels) == len(treatments)
