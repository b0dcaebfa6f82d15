"""What was left out is counted by row, and named by patient."""

import polars as pl
import pytest

import counterpath as cp
from counterpath.importers.left_out import LeftOut


def of(*patients):
    return pl.Series("patient", patients)


def test_rows_are_counted_and_patients_are_named_once():
    """Through several files, whatever kind of id a file has."""
    left_out = LeftOut("meds")
    left_out.add("no-value", "rate", of(1, 1, 1, 1, 1))
    left_out.add("no-value", "rate", of("1", "2/7"))
    left_out.add("no-value", "rate", of())
    (finding,) = left_out.findings()
    assert (finding.code, finding.count, finding.columns) == ("meds-no-value", 7, ("rate",))
    assert finding.patients == ("1", "2/7")
    assert str(finding) == "7 records of rate have no number and were left out. (patients 1, 2/7)"


def test_one_is_said_as_one_and_with_a_warning():
    left_out = LeftOut("meds")
    left_out.add("no-start", "drug", of(3))
    said = "1 end of drug comes without a start before it and was left out. (patient 3)"
    with pytest.warns(cp.CohortWarning) as warned:
        assert [str(finding) for finding in left_out.said()] == [said]
    assert [str(warning.message) for warning in warned] == [said]


def test_what_is_kept_does_not_grow_with_the_rows():
    left_out = LeftOut("meds")
    for _ in range(100):
        left_out.add("no-value", "rate", of(*range(10)))
    (finding,) = left_out.findings()
    assert finding.count == 1_000
    assert sum(map(len, left_out._of.values())) == 10


def test_reasons_are_one_line_or_nothing():
    left_out = LeftOut("meds")
    assert left_out.as_reasons() == ""
    left_out.add("out-of-range", "rate", of(1))
    left_out.add("no-time", "rate", of(2))
    assert left_out.as_reasons() == (
        " Of what there was: 1 record of rate has no time and was left out. (patient 2) "
        "1 value of rate lies outside of its range and was left out. (patient 1)"
    )
