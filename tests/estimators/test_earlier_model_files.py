"""A small file of nearly every format stays readable, and answers as it did when it was written."""

from pathlib import Path

import numpy as np
import pytest
from small_models import small_study

import counterpath as cp
from counterpath.estimators.model_file import FORMAT, LOST, ModelFileError

pytestmark = pytest.mark.slow  # networks are compiled

TODAY = small_study()[1].until(50.0)
PLAN = cp.Plan.repeat("chemotherapy", every=1.0, times=3)
FILES = sorted((Path(__file__).parent / "model_files").glob("format-*.safetensors"))
EARLIER = [path for path in FILES if path.stem != f"format-{LOST}"]


def test_every_format_has_a_file():
    assert [path.stem for path in FILES] == [f"format-{number}" for number in range(1, FORMAT + 1)]


def test_but_one_that_was_written_for_a_day():
    with pytest.raises(ModelFileError, match=r"\(format 5\), whose models are not read any more\. Fit the model again"):
        cp.load(FILES[LOST - 1])


def test_support_is_kept_and_a_file_of_the_first_format_has_none(tmp_path):
    model = cp.load(EARLIER[-1])
    model.save(tmp_path / "again.safetensors")
    before, after = (
        own.predict(TODAY, PLAN, horizons=[1.0, 5.0], draws=4).support
        for own in (model, cp.load(tmp_path / "again.safetensors"))
    )
    for name, values in before.columns().items():
        np.testing.assert_array_equal(values, after.columns()[name])
    assert np.isfinite(before.spread_rank).all()
    assert cp.load(EARLIER[0]).predict(TODAY, PLAN, horizons=[1.0], draws=4).support is None


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.stem)
def test_files_of_earlier_versions_answer_as_they_did(path):
    """Their means on the model's scale: what a file decides, whatever is later done with draws and noise."""
    expected = np.load(path.with_suffix(".npy"))
    means, _ = cp.load(path).components(TODAY, PLAN, np.array([1.0, 2.5, 5.0]), 12, 0)
    # Other processors round in other places, and a path has 64 steps.
    np.testing.assert_allclose(means.mean(axis=0), expected, rtol=1e-4, atol=1e-5)
