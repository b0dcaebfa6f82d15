"""From real records to a judged and recalibrated model: small studies that nobody simulated."""

import numpy as np
import pytest
from real_studies import read_quinidine, read_remifentanil

import counterpath as cp
from counterpath.metrics import paired_ratio

pytestmark = [pytest.mark.data, pytest.mark.slow]

QUICK = {"posteriors": 1, "field_widths": (32, 32), "batch_size": 8, "steps": 300, "validation_share": 0.2}
# Levels need 39 patients or more, which is most of the second study.
STUDIES = {
    "quinidine": (read_quinidine, 48.0, (0.45, 0.4, 0.15), cp.Plan.none()),
    "remifentanil": (read_remifentanil, 10.0, (0.26, 0.63, 0.11), cp.Plan.continued()),
}


@pytest.fixture(scope="module", params=STUDIES)
def study(request):
    """A fitted model, the simplest forecast, and patients to set levels and to judge on."""
    read, max_horizon, shares, plan = STUDIES[request.param]
    train, calibration, test = read().split(shares, seed=0)
    model = cp.BNCDE(max_horizon, **QUICK).fit(train, progress=False)
    return request.param, model, cp.LastValue(max_horizon).fit(train), calibration, test, plan


def test_a_model_of_real_records_is_judged_and_recalibrated(study, tmp_path):
    name, model, simple, calibration, test, plan = study
    before = model.evaluate(test, progress=False)
    # Of 17 patients three decide about the noise, so that intervals may be far too narrow before they are calibrated.
    assert 0.6 < before.overall.coverage[0.95].value <= 1.0
    # Never clearly worse than carrying the last value forward, and better where doses say where it will go.
    ratio = paired_ratio(
        before.points.crps, simple.evaluate(test, progress=False).points.crps, patients=before.points.patient
    )
    assert ratio.lower < 1.0
    assert ratio.value < 0.8 or name == "quinidine"  # of seven patients, from 0.4 to 1.0
    model.calibrate(calibration, progress=False)
    after = model.evaluate(test, progress=False)
    held = after.overall.coverage[0.95]
    # Seven or twenty patients: within three standard errors, and never further off than before.
    assert abs(held.value - 0.95) < 3 * held.standard_error + 0.02
    assert abs(held.value - 0.95) <= abs(before.overall.coverage[0.95].value - 0.95)
    model.save(tmp_path / "model.safetensors")
    today = test.until(test.history_end)
    prediction, again = (
        own.predict(today, plan, horizons=[model.max_horizon / 2, model.max_horizon])
        for own in (model, cp.load(tmp_path / "model.safetensors"))
    )
    lower, upper = prediction.interval(0.95)
    assert np.isfinite(prediction.mean).all()
    assert (lower <= prediction.median).all()
    assert (prediction.median <= upper).all()
    assert (prediction.support.windows > 0).mean() > 0.5
    np.testing.assert_array_equal(again.interval(0.95), (lower, upper))
