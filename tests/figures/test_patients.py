import numpy as np
import pytest
from matplotlib.image import imread

import counterpath as cp


@pytest.fixture(scope="module")
def ward():
    return cp.load_example_ward()


def test_a_panel_for_each_patient_with_their_name_and_units(ward):
    figure = cp.draw_patients(ward, ["W03", "W01"])
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]
    assert [title.split()[0] for title in titles] == ["W03", "W01"]
    assert any(axes.get_ylabel() == "pressure (mmHg)" for axes in figure.axes)
    assert any(axes.get_xlabel() == "time (hours)" for axes in figure.axes)


def test_every_outcome_and_every_treatment_is_drawn(ward):
    patient = next(p for p in ward.patients if (~ward[[p]].events.is_dose).any() and ward[[p]].events.is_dose.any())
    one = ward[[patient]]
    outcome, given = cp.draw_patients(ward, [patient]).axes
    points = next(line for line in outcome.lines if line.get_marker() == "o")
    recorded = ~np.isnan(one.records.values[:, 0])
    np.testing.assert_array_equal(points.get_xdata(), one.records.times[recorded])
    np.testing.assert_array_equal(points.get_ydata(), one.records.values[recorded, 0])
    assert len(given.patches) == (~one.events.is_dose).sum()
    assert sum(len(c.get_offsets()) for c in given.collections) == one.events.is_dose.sum()


def test_the_picture_is_written(ward, tmp_path):
    cp.draw_patients(ward, path=tmp_path / "patients.png")
    picture = imread(tmp_path / "patients.png")
    assert min(picture.shape[:2]) > 600
    assert picture[..., :3].std() > 0.05  # not a blank page


def test_open_infusions_and_patients_without_treatment(ward):
    today = ward.until(8.0)
    running = today.patients.gather(np.unique(today.events.patient_of_row[np.isinf(today.events.stop)]))[0]
    untreated = next(p for p in today.patients if not today[[p]].events.rows)
    figure = cp.draw_patients(today, [running, untreated])
    bars = [patch for axes in figure.axes for patch in axes.patches]
    assert max(bar.get_x() + bar.get_width() for bar in bars) == pytest.approx(8.0)


def test_an_unknown_patient_is_named(ward):
    with pytest.raises(cp.CohortError, match="W99"):
        cp.draw_patients(ward, ["W99"])


def test_one_patient_by_name_and_what_cannot_be_drawn(ward):
    assert len(cp.draw_patients(ward, "W01").axes) == 2
    with pytest.raises(cp.CohortError, match="no patient to draw"):
        cp.draw_patients(ward[:0])
    with pytest.raises(cp.CohortError, match="Did you mean 'pressure'"):
        cp.draw_patients(ward, outcome="presure")
