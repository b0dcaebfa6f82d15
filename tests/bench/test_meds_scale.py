"""What the import of a large MEDS data set is measured on is one, and its page says what was measured."""

import warnings

import numpy as np

import counterpath as cp
from bench import meds_scale


def test_the_made_up_stays_are_read_whole(tmp_path):
    meds_scale.write_events(tmp_path, 5 * meds_scale.EVENTS_PER_SUBJECT, files=2)
    assert len(list((tmp_path / "data" / "train").glob("*.parquet"))) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.CohortWarning)  # about drugs that nobody was given
        cohort = cp.read_meds(tmp_path, meds_scale.SPEC, progress=False)
    assert len(cohort) == 5
    assert np.all(cohort.follow_up_end == meds_scale.HOURS)
    values = ~np.isnan(cohort.records.values)
    taken = 5 * (meds_scale.HOURS - 1)  # of each variable; two within a minute become one
    assert np.all((taken - 5 <= values.sum(axis=0)) & (values.sum(axis=0) <= taken))
    assert cohort.events.start.tolist() == [2.0] * 5
    assert cohort.events.stop.tolist() == [10.0] * 5


def test_the_page_has_a_line_for_each_size():
    run = {"events": 1_000_000, "files": 7, "patients": 400, "records": 9_000, "seconds": 2.5}
    said = {"command": "python -m bench.x", "commit": "0123456789abcdef", "processor": "a processor", "cores": 2}
    content = said | {"python": "3.11", "versions": {"polars": "1"}, "whole": {"rows": 1_000_000, "peak_gb": 1.5}}
    page = meds_scale.page(content | {"runs": [run | {"peak_gb": 0.75, "libraries_gb": 0.5}]})
    assert "| 1,000,000 | 7 | 400 | 9,000 | 2.5 | 0.75 | 0.25 |" in page
    assert "peak of 1.50 GB" in page
