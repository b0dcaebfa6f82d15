import numpy as np
import pytest

import counterpath as cp
from counterpath.figures import Forecast, draw_forecasts


@pytest.fixture(scope="module")
def today():
    return cp.load_tumor_growth(8, seed=0).until(50.0)


def forecast(today, plan, middle):
    elapsed = np.array([1.0, 3.0, 5.0])
    median = np.full((len(today), 3), middle)
    return Forecast("a plan", plan, elapsed, median - 1.0, median, median + 1.0)


def test_past_and_future_are_both_in_view(today, tmp_path):
    plans = [cp.Plan.none(), cp.Plan.repeat("chemotherapy", every=2.0, times=2)]
    figure = draw_forecasts(
        today, [forecast(today, plan, 10.0 * i) for i, plan in enumerate(plans)], back=15.0, path=tmp_path / "f.png"
    )
    assert len(figure.axes) == 8
    for axes in figure.axes:
        assert axes.get_xlim()[0] < -15.0
        assert axes.get_xlim()[1] > 5.0
        assert len(axes.collections) == 2  # a band per plan
    assert any(axes.get_xlabel() == "days from now" for axes in figure.axes)
    assert (tmp_path / "f.png").stat().st_size > 20_000


def test_planned_doses_are_marked(today):
    plan = cp.Plan.repeat("radiotherapy", every=2.0, times=3)
    axes = draw_forecasts(today[:1], [forecast(today[:1], plan, 5.0)], back=2.0).axes[0]
    marks = [line.get_xdata() for line in axes.lines if line.get_marker() == "v"]
    assert any(np.array_equal(mark, [0.0, 2.0, 4.0]) for mark in marks)


def test_nothing_to_draw_is_said(today):
    with pytest.raises(cp.CohortError, match="no forecast to draw"):
        draw_forecasts(today, [], back=5.0)


def test_the_room_for_doses_has_no_numbers(today):
    """They would say that a volume may be negative."""
    elapsed = np.array([1.0, 3.0, 5.0])
    low, median, high = (np.full((len(today), 3), value) for value in (0.0, 6.0, 12.6))
    figure = draw_forecasts(today, [Forecast("a plan", cp.Plan.none(), elapsed, low, median, high)], back=0.5)
    for axes in figure.axes:
        assert axes.get_ylim()[0] < -2.0
        assert min(axes.get_yticks()) >= 0.0
        assert len(axes.get_yticks()) > 2
