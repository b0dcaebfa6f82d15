"""Whatever the API's description allows is answered, and whatever else is refused, without a fault of ours."""

from collections import Counter

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running_explorer import ready, served, some_patients
from schemathesis import GenerationMode

import counterpath as cp

pytestmark = pytest.mark.slow
EXAMPLES = 40
BODIES = ("/api/predict", "/api/effect", "/api/compare", "/api/history")
TREATMENTS = ("chemotherapy", "radiotherapy")
# A first request compiles and many drawn ones are refused: slow examples and filtered ones are no fault here.
drawn = settings(max_examples=EXAMPLES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def described(model):
    with served(model, some_patients()) as url:
        yield schemathesis.openapi.from_url(f"{url}/openapi.json")


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_request_is_our_fault(described, mode):
    operations = [found.ok() for found in described.get_all_operations()]
    assert {operation.path for operation in operations} >= {"/api/card", *BODIES}
    answered = {}

    def hold(operation):
        @drawn
        @given(case=operation.as_strategy(generation_mode=mode))
        def holds(case):
            status = case.call().status_code
            answered.setdefault(operation.path, set()).add(status)
            assert status < 500, case.as_curl_command()

        holds()

    for operation in operations:
        if mode is GenerationMode.POSITIVE or operation.body or len(operation.query):
            hold(operation)
    assert answered["/api/predict"] <= {200, 400, 404, 405, 413, 415, 422}


@pytest.mark.parametrize("path", BODIES)
def test_with_names_that_the_model_knows_many_requests_are_answered(described, path):
    """Else none of them would reach it: a name that is drawn at random is no treatment, no variable and nobody."""
    answered = Counter()

    @drawn
    @given(case=described[path]["POST"].as_strategy(generation_mode=GenerationMode.POSITIVE), data=st.data())
    def holds(case, data):
        case.body = data.draw(tables()) if path == "/api/history" else known(case.body, data)
        answer = case.call()
        answered[answer.status_code] += 1
        assert answer.status_code < 500, case.as_curl_command()

    holds()
    assert answered[200] >= 0.25 * answered.total(), answered


def known(body, data):
    """The same question in names that the model knows, at times that it looks ahead to."""
    asked = {key: value for key, value in body.items() if key not in ("at", "outcome", "patient", "history", "versus")}
    who = {"patient": "P/2"} if body.get("history") is None else {"history": record(body["history"], data)}
    if body.get("horizons"):
        asked["horizons"] = [data.draw(st.floats(0.01, 5.0)) for _ in body["horizons"]]
    for key in ("plan", "versus"):
        if isinstance(body.get(key), dict):
            asked[key] = plan(body[key], data)
    if "plans" in body:
        asked["plans"] = {name: plan(one, data) for name, one in list(body["plans"].items())[:4]}
    return asked | who


def record(history, data):
    volumes = [data.draw(st.floats(0, 1e4)) for _ in history["observations"]]
    rows = [{"time": float(i), "values": {"tumor_volume": volume}} for i, volume in enumerate(volumes)]
    given = [with_known_name(event, data) for event in history.get("treatments", ())]
    return {"observations": rows, "treatments": given, "static": {"subgroup": data.draw(st.sampled_from("ABC"))}}


def plan(content, data):
    parts = {
        kind: [with_known_name(part, data) for part in content.get(kind) or ()][:20] for kind in ("doses", "infusions")
    }
    keeps = [{"without": []} for _ in content.get("keeps_running") or ()][:1]
    return {"keeps_running": keeps, "time_unit": content.get("time_unit"), **parts}


def with_known_name(part, data):
    """The amount, too, is one that there could be."""
    amounts = {key: data.draw(st.floats(0.01, 10.0)) for key in ("dose", "rate") if part.get(key) is not None}
    own = {key: value for key, value in part.items() if key != "patient"}
    return own | amounts | {"treatment": data.draw(st.sampled_from(TREATMENTS))}


@st.composite
def tables(draw):
    times = draw(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=10, unique=True))
    rows = "\n".join(f"{time!r},{draw(st.floats(0, 1e4))!r}" for time in times)
    given = "\n".join(
        f"{draw(st.sampled_from(TREATMENTS))},{time!r},{draw(st.floats(0.01, 10.0))!r}" for time in times[1:]
    )
    return {
        "observations": f"time,tumor_volume\n{rows}",
        "treatments": f"treatment,start,dose\n{given}" if given else "",
        "static": f"subgroup\n{draw(st.sampled_from('ABC'))}",
    }


def examples_of(client):
    """By path, name and body, as the description has them."""
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        content = operations.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json", {})
        for name, example in content.get("examples", {}).items():
            yield path, name, example["value"]


def test_the_examples_of_the_description_are_answered(client):
    examples = list(examples_of(client))
    assert {(path, name) for path, name, _ in examples} == {
        *((path, who) for path in BODIES[:3] for who in ("patient", "history")),
        ("/api/history", "tables"),
    }
    for path, name, body in examples:
        assert client.post(path, json=body).status_code == 200, (path, name)
    parameters = client.get("/openapi.json").json()["paths"]["/api/record"]["get"]["parameters"]
    (patient,) = (one["example"] for one in parameters if one["name"] == "patient")
    assert client.get("/api/record", params={"patient": patient}).status_code == 200


@pytest.mark.parametrize("with_patients", [True, False])
def test_so_they_are_where_there_are_infusions_and_covariates(with_patients):
    ward = cp.load_example_ward()
    with ready(cp.LastValue(5.0).fit(ward), ward if with_patients else None) as client:
        examples = list(examples_of(client))
        assert len(examples) == (7 if with_patients else 4)
        for path, name, body in examples:
            assert client.post(path, json=body).status_code == 200, (path, name, client.post(path, json=body).text)
