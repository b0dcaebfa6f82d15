"""The explorer's answers are the library's, to rounding; what cannot be answered is refused with the field's name."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from running_explorer import NASTY, ready
from small_models import small_study
from starlette.testclient import TestClient

import counterpath as cp
from counterpath.explorer import Limits, create_app
from counterpath.explorer.questions import Size

pytestmark = pytest.mark.slow  # a model is trained

PLAN = {"doses": [{"treatment": "chemotherapy", "time": 0.0, "dose": 5.0}, {"treatment": "radiotherapy", "time": 2.5}]}
OTHER = {"doses": [{"treatment": "radiotherapy", "time": 1.0, "dose": 2.0}]}
HORIZONS = [1.0, 2.5, 5.0]
ASKED = {"patient": "P/2", "at": 50.0, "horizons": HORIZONS}


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
    expected = prediction.laws[0].expected()[:, 0]
    np.testing.assert_allclose(outlook["expectation"]["lower"], np.quantile(expected, 0.025, axis=0), rtol=1e-4)
    np.testing.assert_allclose(outlook["expectation"]["upper"], np.quantile(expected, 0.975, axis=0), rtol=1e-4)
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


def test_plans_are_compared_with_the_one_that_is_named(client):
    plans = {"1": PLAN, "0": OTHER}  # a program may have put such names into another order
    first, second = (
        client.post("/api/compare", json={**ASKED, "plans": plans, "versus": versus}).json() for versus in ("1", "0")
    )
    assert (first["versus"], list(first["changes"])) == ("1", ["0"])
    assert (second["versus"], list(second["changes"])) == ("0", ["1"])
    opposite = [-value for value in second["changes"]["1"]["mean"]]
    np.testing.assert_allclose(first["changes"]["0"]["mean"], opposite, rtol=1e-6)
    answer = client.post("/api/compare", json={**ASKED, "plans": plans, "versus": "2"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "versus")


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
        ({"horizons": [1.0] * 65}, "horizons", "at most 64 items"),
        ({"draws": 401}, "draws", "Input should be 100 or 400"),
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


@pytest.mark.parametrize(
    "harm",
    [
        {"plan": {"doses": [{"treatment": "chemotherapy", "time": 0.0, "dose": 1e300}]}},
        {
            "patient": None,
            "at": None,
            "history": {"observations": [{"time": 0, "values": {"tumor_volume": 1e308}}], "static": {"subgroup": "A"}},
        },
    ],
)
def test_numbers_that_are_too_large_are_refused_and_harm_no_other(client, harm):
    bodies = [{**ASKED, "plan": PLAN}, {**ASKED, "plan": PLAN, **harm}] * 2
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda body: client.post("/api/predict", json=body), bodies))
    assert [answer.status_code for answer in answers] == [200, 422] * 2
    assert "far too large" in answers[1].json()["detail"]
    alone = client.post("/api/predict", json=bodies[0]).json()
    np.testing.assert_allclose(answers[0].json()["outlook"]["mean"], alone["outlook"]["mean"], rtol=1e-5)


def test_where_all_together_fail_each_is_answered_alone(model, cohort, monkeypatch):
    original = type(model).predict

    def fails(self, history, *arguments, **options):
        time.sleep(0.1)  # so that others arrive meanwhile
        if len(history) > 1:
            raise ValueError("somebody's values do not fit")
        return original(self, history, *arguments, **options)

    with ready(model, cohort) as client:
        monkeypatch.setattr(type(model), "predict", fails)
        with ThreadPoolExecutor(6) as pool:
            body = {**ASKED, "plan": PLAN}
            answers = list(pool.map(lambda _: client.post("/api/predict", json=body).status_code, range(6)))
    assert answers == [200] * 6


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (b'{"patient": "P/2",', 400, "at sign 18"),
        (b"[" * 100_000, 400, ""),
        (b'{"patient": "\xff"}', 400, ""),
        (b"null", 422, ""),
        (b'{"patient": "\\ud800", "plan": {}}', 422, "unicode"),
        (
            b'{"history": {"observations": [{"time": 0, "values": {"tumor_volume": 1}}], '
            b'"static": {"subgroup": "\\ud800"}}, "plan": {}}',
            422,
            "",
        ),
        (b'{"patient": "P/2", "plan": {}, "at": NaN}', 422, "finite"),
        (b'{"patient": "P/2", "plan": {}, "draws": ' + b"9" * 4_000 + b"}", 422, ""),
    ],
)
def test_a_broken_body_is_refused(client, body, status, detail):
    answer = client.post("/api/predict", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert detail in answer.json()["detail"]


def test_what_is_wrong_within_is_not_said_of_the_whole(client):
    answer = client.post("/api/predict", json={**ASKED, "plan": PLAN, "horizons": [-1.0]})
    assert [flaw["field"] for flaw in answer.json()["errors"]] == ["horizons.0"]


def test_a_history_names_only_what_the_model_knows(client):
    history = {"observations": [{"time": 0, "values": {"tumor_volume": 2.0}}], "static": {"subgroup": "A", "age": 3}}
    answer = client.post("/api/predict", json={"history": history, "plan": PLAN})
    assert answer.json()["errors"][0]["field"] == "history.static.age"


def test_nobody_by_that_name(client):
    answer = client.post("/api/predict", json={**ASKED, "patient": "nobody", "plan": PLAN})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (404, "patient")
    assert client.get("/api/record", params={"patient": "nobody"}).status_code == 404
    assert client.get("/api/nothing").status_code == 404
    answer = client.put("/api/card")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


def test_too_much_is_refused(client):
    dose = {"treatment": "chemotherapy", "time": 0.0}
    plans = {str(number): {} for number in range(5)}
    assert client.post("/api/compare", json={**ASKED, "plans": plans}).json()["errors"][0]["field"] == "plans"
    answer = client.post("/api/predict", json={**ASKED, "plan": {"doses": [dose] * 201}})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "plan.doses")
    infusion = {"treatment": "chemotherapy", "start": 0.0}
    answer = client.post("/api/predict", json={**ASKED, "plan": {"doses": [dose] * 150, "infusions": [infusion] * 60}})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "plan")
    rows = [{"time": float(i), "values": {"tumor_volume": 1.0}} for i in range(4_900)]
    given = [{"treatment": "chemotherapy", "start": float(i), "dose": 1.0} for i in range(101)]
    history = {"observations": rows, "treatments": given, "static": {"subgroup": "A"}}
    answer = client.post("/api/predict", json={"history": history, "plan": {}})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (413, "history")
    assert client.post("/api/predict", content=b" " * 1_000_001).status_code == 413


def test_a_record_with_infusions_covariates_and_text_can_be_posted():
    ward = cp.load_example_ward()
    plan = {"doses": [{"treatment": "fluid", "time": 1.0}], "keeps_running": [{}]}
    with ready(cp.LastValue(5.0).fit(ward), ward) as client:
        record = client.get("/api/record", params={"patient": "W04", "at": 9.0}).json()
        assert [event["stop"] for event in record["history"]["treatments"] if event["rate"]] == [None]
        assert record["followed"]["infusions"][0]["start"] == 0.0
        stored, posted = (
            client.post("/api/predict", json={**who, "at": 9.0, "plan": plan}).json()
            for who in ({"patient": "W04"}, {"history": record["history"]})
        )
    assert stored == posted
    assert len(stored["outlook"]["median"]) == 5


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
def test_nothing_is_compiled_for_a_question(with_patients, model, cohort, caplog, monkeypatch):
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
            return sum("Compiling" in text for text in caplog.messages)

        assert compilations(bodies[:1]) == 0
        assert compilations(bodies) == 0
        assert compilations([bodies[0] | {"horizons": [1.0, 2.5]}]) == 0  # as five
        assert compilations([bodies[0] | {"horizons": [1.0] * 20 + [2.0] * 20}] * 6) == 0
        assert compilations([bodies[0] | {"draws": 400}] * 6) == 0
        monkeypatch.setattr("counterpath.explorer.questions.SIZES", (Size(100, 65, 64),))
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


def test_a_model_that_cannot_be_made_ready_says_so_for_good(model, cohort, monkeypatch, caplog):
    def fails(*_, **__):
        raise ValueError("the pressure of patient 17 is 93.5")

    app = create_app(model, cohort)
    monkeypatch.setattr(type(model), "even_horizons", fails)
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        while (answer := client.get("/api/card")).json()["title"] == "Not ready":
            time.sleep(0.05)
    assert (answer.status_code, answer.json()["title"]) == (503, "Failed")
    assert "ValueError while the model was made ready" in caplog.text
    assert "93.5" not in answer.text + caplog.text


def test_where_a_model_cannot_tell_there_is_no_number(cohort):
    with ready(cp.LastValue(5.0).fit(small_study()[0]), cohort) as client:
        outlook = client.post("/api/predict", json={**ASKED, "plan": PLAN}).json()["outlook"]
    assert outlook["model_uncertainty"] == outlook["outcome_uncertainty"] == [None] * 3
    assert outlook["expectation"] is None
    assert outlook["behind"]["surer_than"] is None


def test_patients_of_another_kind_are_refused_at_the_start(model):
    with pytest.raises(cp.CohortError):
        create_app(model, cp.load_example_ward())


def test_who_has_gone_is_not_answered(model, cohort, monkeypatch):
    original, asked = type(model).predict, []

    def slow(self, history, *arguments, **options):
        asked.append(len(history))
        time.sleep(0.4)
        return original(self, history, *arguments, **options)

    with ready(model, cohort) as client:
        monkeypatch.setattr(type(model), "predict", slow)
        body = json.dumps({**ASKED, "plan": PLAN}).encode()
        portal = client.portal
        busy = portal.start_task_soon(leaving, client.app, body, 5.0)
        time.sleep(0.1)  # the worker is busy with the first
        gone = [portal.start_task_soon(leaving, client.app, body, 0.05) for _ in range(3)]
        assert [one.result(5) for one in gone] == [None] * 3
        assert busy.result(5) == 200
        assert client.post("/api/predict", json={**ASKED, "plan": PLAN}).status_code == 200
    assert asked == [1, 1]  # nothing was worked out for those who left


async def leaving(app, body, patience):
    """Ask, and hang up after some seconds; the status of the answer, if there was one."""
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "path": "/api/predict", "raw_path": b"/api/predict", "method": "POST", "headers": headers}
    messages, status = [{"type": "http.request", "body": body, "more_body": False}], []

    async def receive():
        if messages:
            return messages.pop()
        await asyncio.sleep(patience)
        return {"type": "http.disconnect"}

    async def send(message):
        status.append(message.get("status"))

    await app(scope | {"query_string": b"", "root_path": "", "http_version": "1.1"}, receive, send)
    return status[0] if status else None
