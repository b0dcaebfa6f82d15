import numpy as np
import polars as pl
import pytest

from counterpath.cohort import Cohort, CohortError, Grid, fit_scaler
from counterpath.cohort.scaling import Scale
from counterpath.paths import control_path

GRID = Grid(np.array([0.0, 1.0, 3.0, 10.0]))


@pytest.fixture
def cohort() -> Cohort:
    observations = pl.DataFrame(
        {
            "patient": [1, 1, 1, 1],
            "time": [0.0, 2.0, 2.5, 6.0],
            "y": [None, 10.0, 14.0, None],
            "x": [1.0, None, 3.0, None],
            "level": ["a", None, "b", None],
        }
    )
    treatments = pl.DataFrame(
        {
            "patient": [1, 1, 1, 1],
            "treatment": ["pill", "pill", "drip", "drip"],
            "start": [2.0, 5.0, 1.0, 4.0],
            "stop": [None, None, 3.0, 6.0],
            "dose": [100.0, 50.0, None, None],
            "rate": [None, None, 2.0, 4.0],
        }
    )
    return Cohort.from_tables(observations, treatments, outcome="y", time_unit="day")


@pytest.fixture
def value(cohort):
    fitted = fit_scaler(cohort, transform="standard")
    plain = tuple(Scale(name=s.name, levels=s.levels) for s in fitted.variables)
    identity = fitted.model_copy(update={"variables": plain, "doses": (2.0, 50.0), "rates": (2.0, 1.0)})
    path = control_path(cohort, identity, GRID, window_start=np.array([0.0]))

    def at(time: float, channel: str) -> float:
        return float(path.values(np.array([[time]]))[0, 0, path.channels.index(channel)])

    return at


def test_values_are_held_from_their_record_on(value):
    assert value(1.999, "y:unseen") == 1.0
    assert value(1.999, "y") == 0.0
    assert value(2.0, "y") == 10.0
    assert value(2.0, "y:unseen") == 0.0
    assert value(9.0, "y") == 14.0
    assert [value(2.4, "level=a"), value(2.4, "level=b")] == [1.0, 0.0]
    assert [value(2.5, "level=a"), value(2.5, "level=b")] == [0.0, 1.0]


def test_time_and_time_since_are_on_the_models_clock(value):
    assert value(5.0, "time") == 0.5
    assert value(1.0, "y:since") == 0.1  # nothing seen: since the window began
    assert value(4.5, "y:since") == pytest.approx(0.2)


def test_slope_is_over_at_least_one_cell(value):
    """From 10 to 14 in half a day, in a cell of two days: 4 per cell, not 16."""
    assert value(2.4, "y:slope") == 0.0
    assert value(2.5, "y:slope") == 4.0


def test_counts_are_of_records_that_had_a_value(value):
    assert [value(t, "y:count") for t in (0.0, 2.0, 6.0)] == [0.0, 1.0, 2.0]
    assert [value(t, "x:count") for t in (0.0, 2.0, 6.0)] == [1.0, 1.0, 2.0]


def test_a_dose_enters_after_its_time(value):
    assert [value(t, "pill:count") for t in (2.0, 2.001, 5.0, 5.1)] == [0.0, 1.0, 1.0, 2.0]
    assert [value(t, "pill:dose") for t in (2.0, 2.001, 5.1)] == [0.0, 2.0, 3.0]  # in usual doses of 50


def test_an_infusion_flows_while_it_runs(value):
    assert [value(t, "drip:rate") for t in (1.0, 1.1, 3.0, 3.1, 5.0, 7.0)] == [0.0, 1.0, 1.0, 0.0, 2.0, 0.0]
    assert [value(t, "drip:count") for t in (1.0, 3.5, 4.5)] == [0.0, 1.0, 2.0]
    # usual rate 2 on [1, 3), 4 on [4, 6); clock of 10 days
    infused = [value(t, "drip:infused") for t in (1.0, 2.0, 3.5, 5.0, 9.0)]
    np.testing.assert_allclose(infused, [0.0, 0.1, 0.2, 0.4, 0.6])


def test_timing_says_how_much_of_their_cells_is_left(value):
    """The outcome came at 2.0 and 2.5, in the cell from 1 to 3; the doses at 2.0 and at 5.0, in that from 3 to 10."""
    assert [value(t, "y:timing") for t in (1.9, 2.0, 2.5, 9.0)] == [0.0, 0.0, -0.25, -0.25]
    assert [value(t, "pill:timing") for t in (2.0, 2.1)] == [0.0, 0.0]
    assert value(5.1, "pill:timing") == pytest.approx(5 / 7 - 0.5)


def test_answers_are_known_from_the_record_that_shows_them(value):
    """Between 10 at 2.0 and 14 at 2.5 a pill was given and a drip ran; what came later has not been answered."""
    for name, before in (("pill", 0.0), ("drip", 1.0)):
        assert [value(t, f"y:{name}:answered") for t in (1.9, 2.0, 2.5, 9.0)] == [0.0, before, 1.0, 1.0]
        assert [value(t, f"y:{name}:response") for t in (2.0, 2.4, 2.5, 9.0)] == [0.0, 0.0, 4.0, 4.0]
        assert [value(t, f"y:{name}:exposure") for t in (2.4, 2.5, 9.0)] == [0.0, 0.05, 0.05]  # of ten days


def test_before_the_first_record_nothing_is_known(value):
    assert value(-1.0, "x:count") == 0.0
    assert value(-1.0, "y:unseen") == 1.0


def test_channels_depend_on_the_schema_and_not_on_who_is_there(cohort):
    """A test patient without any dose has the channels of the training cohort."""
    untreated = cohort.until(0.5)
    scaler = fit_scaler(cohort, transform="standard")
    paths = [control_path(c, scaler, GRID, window_start=np.array([0.0])) for c in (cohort, untreated)]
    assert paths[0].channels == paths[1].channels
    assert paths[1].values(np.array([[0.4]])).shape[-1] == len(paths[0].channels)


def test_patients_who_were_read_otherwise_are_refused(cohort):
    scaler = fit_scaler(cohort, transform="standard")
    other = Cohort.from_tables(cohort.observations, outcome="y", time_unit="day")
    with pytest.raises(CohortError, match="like=train"):
        control_path(other, scaler, GRID, window_start=np.array([0.0]))
