"""The explorer's answers are the library's, to rounding; what cannot be answered is refused with the field's name."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from running_explorer import NASTY, some_model, some_patients
from starlette.testclient import TestClient

import counterpath as cp
from counterpath.explorer import Limits, create_app

pytestmark = pytest.mark.slow  # a model is trained

PLAN = {"doses": [{"treatment": "chemotherapy", "time": 0.0, "dose": 5.0}, {"treatment": "radiotherapy", "time": 2.5}]}
OTHER = {"doses": [{"treatment": "radiotherapy", "time": 1.0, "dose": 2.0}]}
HORIZONS = [1.0, 2.5, 5.0]
ASKED = {"patient": "P/2", "at": 50.0, "horizons": HORIZONS}


@pytest.fixture(scope="module")
def model():
    return some_model()


@pytest.fixture(scope="module")
def cohort():
    return some_patients()


@pytest.fixture(scope="module")
def client(model, cohort):
    with ready(model, cohort) as client:
        yield client


class ready(TestClient):  # noqa: N801 (used as a context)
    def __init__(self, model, cohort=None, **options):
        super().__init__(create_app(model, cohort, **options), base_url="http://127.0.0.1:8000")
        self.wanted = {"Authorization": f"Bearer {options['token']}"} if "token" in options else {}

    def __enter__(self):
        super().__enter__()
        while self.get("/api/ready", headers=self.wanted).status_code == 503:
            time.sleep(0.05)
        return self


def known(cohort, patient="P/2", at=50.0):
    return cohort[[patient]].until(at)


def test_a_prediction_is_the_librarys(client, model, cohort):
    said = client.post("/api/predict", json={**ASKED, "plan": PLAN}).json()
    prediction = model.predict(known(cohort), cp.Plan.checked(**PLAN), horizons=HORIZONS, progress=False)
    outlook = said["outlook"]
    np.testing.assert_allclose(outlook["mean"], prediction.mean[0], rtol=1e-5)
    np.testing.assert_allclose(outlook["median"], prediction.median[0], rtol=1e-5)
    np.testing.assert_allclose(outlook["model_uncertainty"], prediction.model_uncertainty[0], rtol=1e-4)
    np.testing.assert_allclose(outlook["outcome_uncertainty"], prediction.outcome_uncertainty[0], rtol=1e-4)
    for band in outlook["bands"]:
        lower, upper = prediction.interval(band["level"])
        np.testing.assert_allclose(band["lower"], lower[0], rtol=1e-5)
        np.testing.assert_allclose(band["upper"], upper[0], rtol=1e-5)
    assert outlook["behind"]["windows"] == prediction.support.windows[0].tolist()
    assert (said["at"], said["elapsed"], said["outcome"]) == (50.0, HORIZONS, "tumor_volume")


def test_a_record_that_is_posted_is_the_patient(client):
    record = client.get("/api/record", params={"patient": "P/2", "at": 50.0}).json()
    stored, posted = (
        client.post("/api/predict", json={**who, "at": 50.0, "horizons": HORIZONS, "plan": PLAN}).json()
        for who in ({"patient": "P/2"}, {"history": record["history"]})
    )
    assert stored == posted


def test_what_came_later_is_told_apart(client, cohort):
    record = client.get("/api/record", params={"patient": "P/2", "at": 50.0}).json()
    assert max(row["time"] for row in record["history"]["observations"]) <= 50.0
    whole = cohort[["P/2"]]
    later = whole.records.times[(whole.records.times > 50.0) & (whole.records.times <= 55.0)]
    assert [50.0 + row["time"] for row in record["later"]] == pytest.approx(later.tolist())
    given = whole.events.start[(whole.events.start >= 50.0) & (whole.events.start < 55.0)]
    assert sorted(50.0 + dose["time"] for dose in record["followed"]["doses"]) == pytest.approx(sorted(given))


def test_an_effect_is_the_librarys(client, model, cohort):
    asked = {**ASKED, "plan": PLAN, "versus": OTHER, "better": "lower", "margin": 0.01}
    said = client.post("/api/effect", json=asked).json()
    effect = model.effect(
        known(cohort), cp.Plan.checked(**PLAN), versus=cp.Plan.checked(**OTHER), horizons=HORIZONS, progress=False
    )
    lower, upper = effect.interval(0.95)
    change = said["change"]
    np.testing.assert_allclose(change["mean"], effect.mean[0], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(change["lower"], lower[0], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(change["upper"], upper[0], rtol=1e-3, atol=1e-5)
    benefit = effect.probability_of_benefit(better="lower", margin=0.01)[0]
    np.testing.assert_allclose(change["probability_of_benefit"], benefit, atol=0.011)  # a draw may lie at the margin
    assert said["label"] == effect.label
    assert said["assumptions"] == effect.assumptions


def test_plans_are_compared_with_the_first(client, model, cohort):
    plans = {"A": PLAN, "B": OTHER, "none": {}}
    said = client.post("/api/compare", json={**ASKED, "plans": plans, "better": "lower"}).json()
    assert list(said["outlooks"]) == ["A", "B", "none"]
    assert list(said["changes"]) == ["B", "none"]
    alone = client.post("/api/effect", json={**ASKED, "plan": OTHER, "versus": PLAN}).json()["change"]
    np.testing.assert_allclose(said["changes"]["B"]["mean"], alone["mean"], rtol=1e-3, atol=1e-6)
    ranking = model.rank(
        known(cohort),
        {name: cp.Plan.checked(**plan) for name, plan in plans.items()},
        better="lower",
        horizons=HORIZONS,
        progress=False,
    )
    best = np.array([said["probability_best"][name] for name in plans])
    np.testing.assert_allclose(best, ranking.probability_best[:, 0], atol=0.011)


def test_questions_that_come_together_are_answered_together(model, cohort, monkeypatch):
    asked_for = []
    original = type(model).predict

    def counted(self, history, *arguments, **options):
        if options.get("draws") == 100:
            asked_for.append(len(history))
            time.sleep(0.2)  # so that others arrive meanwhile
        return original(self, history, *arguments, **options)

    with ready(model, cohort) as client:
        alone = client.post("/api/predict", json={**ASKED, "plan": PLAN}).json()
        monkeypatch.setattr(type(model), "predict", counted)
        patients = [name for name in cohort.patients if name != NASTY]
        with ThreadPoolExecutor(12) as pool:
            bodies = [{**ASKED, "patient": patient, "plan": PLAN} for patient in patients]
            answers = list(pool.map(lambda body: client.post("/api/predict", json=body).json(), bodies))
    assert sum(asked_for) == len(patients)
    assert len(asked_for) < len(patients) / 2
    together = answers[patients.index("P/2")]["outlook"]["mean"]
    np.testing.assert_allclose(together, alone["outlook"]["mean"], rtol=1e-5)


def test_one_bad_question_keeps_no_other_from_its_answer(client):
    bodies = [{**ASKED, "plan": PLAN}, {**ASKED, "plan": {"doses": [{"treatment": "prayer", "time": 0}]}}] * 3
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda body: client.post("/api/predict", json=body).status_code, bodies))
    assert found == [200, 422] * 3


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"plan": {"doses": [{"treatment": "chemo", "time": 0}]}}, "plan", "names 'chemo'"),
        (
            {"plan": {"doses": [{"treatment": "chemotherapy", "time": -1}]}},
            "plan.doses.0.time",
            "greater than or equal",
        ),
        ({"plan": {"doses": [{"treatment": "chemotherapy", "time": 0, "patient": "P/1"}]}}, "plan", "names a patient"),
        ({"at": 500.0}, "at", "not under observation"),
        ({"horizons": [9.0]}, "horizons", "looks 5 ahead, and 9 is further"),
        ({"horizons": []}, "horizons", "at least 1 item"),
        ({"horizons": [1.0] * 65}, "horizons", "At most 64"),
        ({"draws": 401}, "draws", "At most 400"),
        ({"outcome": "weight"}, "outcome", "'weight' is no outcome of this model"),
        ({"patient": None}, "body", "either which patient, or a history"),
        ({"colour": "red"}, "colour", "Extra inputs"),
    ],
)
def test_what_cannot_be_asked_is_said_of_its_field(client, change, field, message):
    answer = client.post("/api/predict", json={**ASKED, "plan": PLAN, **change})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    (flaw,) = answer.json()["errors"]
    assert flaw["field"] == field
    assert message in flaw["message"]


def test_nobody_by_that_name(client):
    answer = client.post("/api/predict", json={**ASKED, "patient": "nobody", "plan": PLAN})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (404, "patient")
    assert client.get("/api/record", params={"patient": "nobody"}).status_code == 404
    assert client.get("/api/nothing").status_code == 404


def test_too_much_is_refused(client):
    dose = {"treatment": "chemotherapy", "time": 0.0}
    plans = {str(number): {} for number in range(5)}
    assert client.post("/api/compare", json={**ASKED, "plans": plans}).json()["errors"][0]["field"] == "plans"
    answer = client.post("/api/predict", json={**ASKED, "plan": {"doses": [dose] * 201}})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "plan")
    rows = [{"time": float(i), "values": {"tumor_volume": 1.0}} for i in range(5_001)]
    history = {"observations": rows, "static": {"subgroup": "A"}}
    answer = client.post("/api/predict", json={"history": history, "plan": {}})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (413, "history")
    assert client.post("/api/predict", content=b" " * 1_000_001).status_code == 413


def test_a_table_becomes_a_record(client, cohort):
    own = cohort[["P/2"]]
    tables = {
        "observations": own.observations.write_csv(),
        "treatments": own.treatments.write_csv(),
        "static": own.static.select("patient", "subgroup").write_csv(),
    }
    history = client.post("/api/history", json=tables).json()
    body = {"history": history, "at": 50.0, "horizons": HORIZONS, "plan": PLAN}
    said, expected = (client.post("/api/predict", json=one).json() for one in (body, {**ASKED, "plan": PLAN}))
    np.testing.assert_allclose(said["outlook"]["mean"], expected["outlook"]["mean"], rtol=1e-5)


@pytest.mark.parametrize(
    ("tables", "field", "message"),
    [
        ({"observations": "time,volume\n0,1"}, "observations", "no column 'tumor_volume'. Did you mean 'volume'?"),
        ({"observations": "time,tumor_volume\n0,much"}, "observations", "much"),
        ({"observations": "time,tumor_volume\n"}, "observations", "a heading and no row"),
        ({"observations": "patient,time,tumor_volume\n1,0,1\n2,0,1"}, "observations", "has 2 patients"),
        ({"observations": "time,tumor_volume\n0,1", "static": ""}, "static", "The model knows subgroup"),
        ({"observations": "time,tumor_volume\n0,1", "treatments": "drug\nx"}, "treatments", "a column `start`"),
        ({}, "observations", "required"),
    ],
)
def test_a_wrong_table_is_said_of_its_field(client, tables, field, message):
    answer = client.post("/api/history", json={"static": "subgroup\nA", **tables})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field
    assert message in answer.json()["errors"][0]["message"]


def test_patients_are_searched_sorted_and_paged(client, cohort):
    every = client.get("/api/patients").json()
    assert every["total"] == 12
    assert [line["patient"] for line in every["patients"]] == cohort.patients.to_list()
    widths = [line["width"] for line in client.get("/api/patients", params={"sort": "uncertainty"}).json()["patients"]]
    assert widths == sorted(widths, reverse=True)
    second = client.get("/api/patients", params={"size": 5, "page": 2}).json()
    assert [line["patient"] for line in second["patients"]] == cohort.patients.to_list()[5:10]
    assert client.get("/api/patients", params={"search": "p/1"}).json()["total"] == 3  # 1, 10, 11


def test_the_card_says_what_the_model_is(client, model):
    card = client.get("/api/card").json()
    assert card["model"] == "BNCDE"
    assert card["max_horizon"] == 5.0
    assert [t["name"] for t in card["learned"]["treatments"]] == ["chemotherapy", "radiotherapy"]
    assert card["calibration"].startswith("95% intervals held")
    assert "no unmeasured confounding" in card["assumptions"]
    assert "Not a medical device" in card["notice"]
    assert set(card["horizons"]) <= set(card["curve"])


def test_without_patients_one_can_still_ask(model):
    with ready(model) as client:
        assert client.get("/api/patients").json()["total"] == 0
        history = {"observations": [{"time": 0, "values": {"tumor_volume": 2.0}}], "static": {"subgroup": "A"}}
        assert client.post("/api/predict", json={"history": history, "plan": PLAN}).status_code == 200


@pytest.mark.parametrize("with_patients", [True, False])
def test_nothing_is_compiled_for_a_question_of_the_page(with_patients, model, cohort, caplog):
    jax.clear_caches()  # what other tests have asked for
    history = {"observations": [{"time": 0, "values": {"tumor_volume": 2.0}}], "static": {"subgroup": "A"}}
    with ready(model, cohort if with_patients else None) as client:
        horizons = client.get("/api/card").json()["curve"]
        bodies = [{"history": history, "horizons": horizons, "plans": {"A": PLAN, "B": OTHER}, "draws": 100}] * 6

        def compilations(bodies):
            caplog.clear()
            jax.config.update("jax_log_compiles", True)  # in all threads
            with ThreadPoolExecutor(6) as pool:
                answers = list(pool.map(lambda body: client.post("/api/compare", json=body), bodies))
            jax.config.update("jax_log_compiles", False)
            assert all(answer.status_code == 200 for answer in answers)
            return sum("Compiling" in text and "_outcomes" in text for text in caplog.messages)

        assert compilations(bodies[:1]) == 0
        assert compilations(bodies) == 0
        assert compilations([bodies[0] | {"horizons": [1.0] * 20 + [2.0] * 20}]) == 1  # the count does count


def test_who_waits_too_long_is_told(model, cohort, monkeypatch):
    original, begun = type(model).predict, threading.Event()

    def slow(self, *arguments, **options):
        begun.set()
        time.sleep(0.5)
        return original(self, *arguments, **options)

    with ready(model, cohort, limits=Limits(answer_seconds=0.2, waiting=1)) as client, ThreadPoolExecutor(3) as pool:
        monkeypatch.setattr(type(model), "predict", slow)
        body = {**ASKED, "plan": PLAN}
        first = pool.submit(client.post, "/api/predict", json=body)
        assert begun.wait(5)
        others = [pool.submit(client.post, "/api/predict", json=body) for _ in range(2)]
        assert first.result().status_code == 504
        assert sorted(other.result().status_code for other in others) == [503, 504]
        monkeypatch.setattr(type(model), "predict", original)
        time.sleep(0.6)
        assert client.post("/api/predict", json={**body, "horizons": [1.0]}).status_code in (200, 504)
