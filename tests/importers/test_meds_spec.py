"""A spec says what to take; one that is wrong says where, and what to write."""

import json
from functools import partial

import polars as pl
import pytest
from small_meds import SPEC, person, row, stay, write_meds

import counterpath as cp
from counterpath.importers import MedsSpec, read_spec
from counterpath.importers.meds_spec import ready_specs

# Every part of a spec, as somebody would write it.
TOML = """
time_unit = "hour"
merge_within = 0.02
death = ["MEDS_DEATH", "re:DIED//.*"]

[stay]
begins = "re:IN//.*"
ends = "OUT"
number = "stay"
longest = 8

[outcome.pressure]
codes = ["LAB//art", "LAB//cuff"]
unit = "mmHg"
range = [10, 75]
bounds = [0, 300]

[covariates.rate]
codes = "LAB//rate"
bounds = [20, 300]

[static.sex]
codes = "re:SEX//(.*)"

[static.age]
codes = "MEDS_BIRTH"
value = "years"

[treatments.drug]
starts = "DRUG//ON"
ends = "DRUG//OFF"
pair_by = ["stay", "order"]
unit = "mg/h"
units = { "mcg/h" = 0.001, "mcg/min" = false }

[treatments.pill]
codes = "PILL"
"""


@pytest.fixture
def write(tmp_path):
    return partial(write_meds, tmp_path / "meds")


def read(folder, spec=SPEC):
    return cp.read_meds(folder, spec, progress=False)


def in_all_units():
    rows = person() + stay()
    rows[6] = row(1, 3.0, "DRUG//ON", 4_000.0, unit="mcg/h", stay=7, order=72)
    rows.insert(-2, row(1, 5.5, "DRUG//ON", 9.0, unit="mcg/min", stay=7, order=73))
    return rows


def test_every_part_of_a_toml_file_is_heard(write, tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(TOML)
    with pytest.warns(cp.CohortWarning):
        cohort = read(write(in_all_units()), path)
    assert cohort.patients.to_list() == ["1/7"]
    assert cohort.follow_up_end.tolist() == [8.0]
    observed = cohort.observations.select("time", "pressure", "rate")
    assert observed.rows() == [(2.0, None, 60.0), (5.0, 70.0, None)]
    (pressure,), (rate,) = cohort.schema.outcomes, cohort.schema.covariates
    assert (pressure.unit, pressure.lower, pressure.upper) == ("mmHg", 0.0, 300.0)
    assert (rate.lower, rate.upper) == (20.0, 300.0)
    assert cohort.static.select("sex").item() == "F"
    given = cohort.treatments.sort("start").select("treatment", "start", "stop", "dose", "rate").rows()
    assert given == [
        ("drug", 1.0, 3.0, None, 2.0),
        ("drug", 3.0, 6.0, None, 4.0),
        ("pill", 4.0, None, 5.0, None),
    ]
    counts = {repair.code: repair.count for repair in cohort.repairs}
    assert counts == {"meds-out-of-range": 1, "meds-other-unit": 1, "meds-no-end": 1, "merged_records": 0}


def test_toml_json_and_python_say_the_same(write, tmp_path):
    (tmp_path / "spec.toml").write_text(TOML)
    spec = read_spec(tmp_path / "spec.toml")
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    assert read_spec(tmp_path / "spec.json") == spec
    assert read_spec(json.loads(spec.model_dump_json())) == spec
    assert read_spec(MedsSpec(**spec.model_dump())) == spec


def test_a_file_of_another_kind_says_so(tmp_path):
    for name, content, kind in (("a.toml", "outcome = [", "TOML"), ("a.json", "{", "JSON"), ("b.toml", "{}", "TOML")):
        (tmp_path / name).write_text(content)
        with pytest.raises(cp.CohortError, match=rf"is not the {kind} it should be"):
            read_spec(tmp_path / name)
    (tmp_path / "latin.toml").write_bytes('unit = "µg"'.encode("latin-1"))
    with pytest.raises(cp.CohortError, match="is not the TOML it should be"):
        read_spec(tmp_path / "latin.toml")


def test_all_ready_specs_can_be_read():
    assert ready_specs() == ["icu-haemodynamics"]
    assert [read_spec(name).time_unit for name in ready_specs()] == ["hour"]


@pytest.mark.parametrize("code", ["re:LAB//(?!art).*", "re:LAB//(?=art).*", "re:(?<=LAB)//art", r"re:(a)\1", "re:("])
def test_patterns_that_polars_does_not_read_say_what_to_do(code):
    spec = SPEC | {"outcome": {"pressure": {"codes": code}}}
    with pytest.raises(
        cp.CohortError, match=r"outcome.*pressure.*is not a regular expression.*list the codes"
    ) as raised:
        read_spec(spec)
    assert "Traceback" not in str(raised.value)
    assert repr(code) in str(raised.value)


@pytest.mark.parametrize("limits", [[200, 10], [10, 10]])
@pytest.mark.parametrize("what", ["range", "bounds"])
def test_limits_the_wrong_way_round(what, limits):
    spec = SPEC | {"outcome": {"pressure": {"codes": "LAB//art", what: limits}}}
    with pytest.raises(cp.CohortError, match=rf"{what}.*{limits[0]} is not below the upper limit {limits[1]}"):
        read_spec(spec)


@pytest.mark.parametrize("limits", [[None, 75], [75, None], [None, None]])
def test_a_range_may_be_open(write, limits):
    spec = SPEC | {"outcome": {"pressure": {"codes": ["LAB//art", "LAB//cuff"], "range": limits}}}
    low, high = limits
    left = [v for v in (80.0, 70.0) if (low is None or v >= low) and (high is None or v <= high)]
    if len(left) == 2:
        cohort = read(write(person() + stay()), spec)
    else:
        with pytest.warns(cp.CohortWarning, match="outside of its range"):
            cohort = read(write(person() + stay()), spec)
    assert cohort.observations["pressure"].drop_nulls().to_list() == left


@pytest.mark.parametrize("name", ["patient", "time", "begin", "follow_up_end"])
@pytest.mark.parametrize("part", ["static", "covariates"])
def test_names_of_key_columns_are_refused(name, part):
    own = {"codes": "re:SEX//(.*)"} if part == "static" else {"codes": "LAB//rate"}
    with pytest.raises(cp.CohortError, match=rf"'{name}' is the name of a key column; choose another name"):
        read_spec(SPEC | {part: {name: own}})


@pytest.mark.parametrize("name", ["end", "number", "subject_id", "code", "value", "variable", "start", "stop", "unit"])
def test_other_names_are_free(write, name):
    spec = SPEC | {"static": {name: {"codes": "re:SEX//(.*)"}}}
    assert read(write(person() + stay()), spec).static[name].to_list() == ["F"]
    spec = SPEC | {"covariates": {name: {"codes": "LAB//rate"}}}
    assert read(write(person() + stay()), spec).observations[name].drop_nulls().to_list() == [60.0]


def test_a_name_of_two_things_is_refused():
    with pytest.raises(cp.CohortError, match="'pressure' is named twice"):
        read_spec(SPEC | {"covariates": {"pressure": {"codes": "LAB//rate"}}})


def test_bounds_hold_for_covariates_too(write):
    spec = SPEC | {"covariates": {"rate": {"codes": "LAB//rate", "bounds": [70, 300]}}}
    with pytest.raises(cp.CohortError, match="rate"):
        read(write(person() + stay()), spec)
    spec = SPEC | {"covariates": {"rate": {"codes": "LAB//rate", "bounds": [20, 300]}}}
    (rate,) = read(write(person() + stay()), spec).schema.covariates
    assert (rate.lower, rate.upper) == (20.0, 300.0)


def test_doses_by_codes_keep_their_amounts(write):
    found = read(write(person() + stay())).treatments.filter(pl.col("treatment") == "pill")
    assert found.select("start", "dose").rows() == [(4.0, 5.0)]
