"""Plans of a comparison that the explorer saved, as commands read them."""

import json

import pytest

import counterpath as cp
from counterpath.cli.arguments import read_plan

DOSES = {"doses": [{"treatment": "chemotherapy", "time": 1.0}], "time_unit": "day"}


@pytest.fixture(scope="module")
def cohort():
    return cp.simulate_tumor_growth(2).cohort


@pytest.mark.parametrize("name", ["A", "a#b", "#", "comparison.json#A", "new.json"])
def test_a_plan_of_any_name_is_read(tmp_path, cohort, name):
    path = tmp_path / "comparison.json"
    path.write_text(json.dumps({"plans": {name: DOSES, "other": {}}}))
    assert read_plan(f"{path}#{name}", cohort) == cp.Plan.checked(**DOSES)


def test_a_plan_that_is_not_in_it_is_named(tmp_path, cohort):
    path = tmp_path / "comparison.json"
    path.write_text(json.dumps({"plans": {"a#b": DOSES}}))
    with pytest.raises(cp.PlanError, match=r"has no plan 'a#c'\. Did you mean 'a#b'\?"):
        read_plan(f"{path}#a#c", cohort)
