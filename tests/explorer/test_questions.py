"""Questions that once failed: plans in several units, outcomes that nobody predicts, what the library refuses."""

import numpy as np
import pytest
from running_explorer import ready

import counterpath as cp

pytestmark = pytest.mark.slow  # a model is trained

ASKED = {"patient": "P/2", "at": 50.0, "horizons": [1.0, 2.5, 5.0]}
DOSE = {"treatment": "chemotherapy", "time": 2.0, "dose": 5.0}
IN_HOURS = {"doses": [DOSE | {"time": 48.0}], "time_unit": "hour"}  # the model counts days
OTHERS = [{"doses": [DOSE]}, {"doses": [DOSE], "time_unit": "day"}, {"keeps_running": [{}]}, {}]


@pytest.mark.parametrize("other", OTHERS, ids=["no unit", "days", "what runs", "nothing"])
def test_plans_may_have_units_of_their_own(client, other):
    alone = client.post("/api/predict", json=ASKED | {"plan": other}).json()["outlook"]["median"]
    said = client.post("/api/compare", json=ASKED | {"plans": {"A": IN_HOURS, "B": other}})
    assert said.status_code == 200
    np.testing.assert_allclose(said.json()["outlooks"]["B"]["median"], alone, rtol=1e-5)
    changed = client.post("/api/effect", json=ASKED | {"plan": IN_HOURS, "versus": other})
    assert changed.status_code == 200
    is_same = bool(other.get("doses"))
    assert np.allclose(changed.json()["change"]["mean"], 0.0, atol=1e-6) == is_same


def test_what_the_library_refuses_is_not_our_fault(client, monkeypatch):
    def refuses(*_, **__):
        raise cp.CohortError("Nobody is known well enough.")

    monkeypatch.setattr("counterpath.explorer.desk.tell", refuses)
    answer = client.post("/api/predict", json=ASKED | {"plan": {}})
    assert (answer.status_code, answer.json()["detail"]) == (422, "Nobody is known well enough.")
    assert answer.headers["content-type"] == "application/problem+json"


def test_only_outcomes_that_are_predicted_can_be_asked_for():
    ward = cp.load_example_ward()
    two = ward.schema.model_copy(
        update={"outcomes": ward.schema.outcomes + ward.schema.covariates[:1], "covariates": ward.schema.covariates[1:]}
    )
    cohort = cp.Cohort.from_tables(ward.observations, ward.treatments, ward.static, like=two)
    first, second = (outcome.name for outcome in two.outcomes)
    with ready(cp.LastValue(5.0).fit(cohort), cohort) as client:
        asked = {"patient": "W04", "at": 9.0, "plan": {}}
        assert client.post("/api/predict", json=asked | {"outcome": first}).status_code == 200
        answer = client.post("/api/predict", json=asked | {"outcome": second})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "outcome")
        assert client.get("/api/card").json()["outcomes"] == [first]
