"""What stands behind a forecast: a plan like nobody's is never observed, and the advice is to lean on it no more."""

import numpy as np
import pytest

import counterpath as cp
from counterpath.cohort.findings import UnseenDoseWarning

pytestmark = pytest.mark.slow  # a model is trained

ASKED = {"patient": "P/2", "at": 50.0, "horizons": [1.0, 3.0, 5.0]}
USUAL = {"doses": [{"treatment": "chemotherapy", "time": 0.0, "dose": 5.0}]}
TOO_MUCH = {"doses": [{"treatment": "chemotherapy", "time": 0.1 * i, "dose": 50.0} for i in range(20)]}


@pytest.fixture(scope="module")
def said(client):
    return client.post("/api/compare", json=ASKED | {"plans": {"usual": USUAL, "much": TOO_MUCH}}).json()


def test_a_plan_like_nobodys_is_never_observed(said, model, cohort):
    behind = said["outlooks"]["much"]["behind"]
    plan, today = cp.Plan.checked(**TOO_MUCH), cohort[["P/2"]].until(50.0)
    with pytest.warns(UnseenDoseWarning):
        support = model.predict(today, plan, horizons=ASKED["horizons"], progress=False).support
    assert support.never_observed.any()
    assert behind["never_observed"]
    assert behind["windows"] == support.windows[0].tolist() == [0, 0, 0]
    assert behind["surer_than"] == pytest.approx(1.0 - float(np.nanmax(support.spread_rank[0])))
    assert "Never observed" in behind["cautions"][0]
    assert "A dose or rate lies outside what training patients received." in behind["cautions"]
    assert "More is given than to any training patient in such a time." in behind["cautions"]
    assert said["outlooks"]["much"]["defer"]
    assert "was never seen" in said["warnings"][0]


def test_a_usual_plan_is_not(said):
    behind = said["outlooks"]["usual"]["behind"]
    assert (behind["never_observed"], behind["cautions"]) == (False, [])
    assert min(behind["windows"]) > 0
    assert not said["outlooks"]["usual"]["defer"]


def test_what_is_said_of_a_plan_is_said_of_its_effect(client, said):
    cautions = said["outlooks"]["much"]["behind"]["cautions"]
    assert said["changes"]["much"]["cautions"] == cautions
    back = client.post("/api/effect", json=ASKED | {"plan": USUAL, "versus": TOO_MUCH}).json()
    assert back["change"]["cautions"] == cautions  # an effect is as weak as the weaker of the two


def test_the_card_sums_the_training_up(client, model):
    training = client.get("/api/card").json()["training"]
    assert training == {
        "seed": model.seed,
        "epochs": int(model.history_["epoch"].max()),
        "seconds": round(float(model.history_["seconds"].max()), 1),
        "windows": int(model.experience_.windows.max()),
    }
    assert training["epochs"] == 4
