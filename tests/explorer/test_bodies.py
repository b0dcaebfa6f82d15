"""However a body is wrong, little is worked on it, and what is said of it is short."""

import pytest

from counterpath.explorer import app, problems

pytestmark = pytest.mark.slow  # a model is trained

WHO = {"patient": "P/2"}
ROW = {"time": 0.0, "values": {"tumor_volume": 1.0}}
MANY = {str(number): 0 for number in range(70_000)}
DOSE = {"treatment": "chemotherapy", "time": 0.0}


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (WHO | {"plan": {"doses": [DOSE] * 4_000}}, 422, "plan.doses"),
        (WHO | {"plan": {"doses": [{}] * 240_000}}, 413, "plan.doses"),
        (WHO | {"plan": {"doses": [{}] * 4_000}}, 422, "plan.doses.0.treatment"),
        (WHO | {"plan": {"doses": [{}] * 200}}, 422, "plan.doses.0.treatment"),
        (WHO | {"plan": {"doses": [DOSE | MANY]}}, 413, "plan.doses.0"),
        (WHO | {"plan": {"keeps_running": [{"without": [1] * 300_000}]}}, 413, "plan.keeps_running.0.without"),
        (WHO | {"plan": {}, "horizons": [-1] * 300_000}, 413, "horizons"),
        (WHO | {"plan": {}} | MANY, 413, "body"),
        ({"history": {"observations": [{}] * 240_000}, "plan": {}}, 413, "history.observations"),
        ({"history": {"observations": [{}] * 5_000}, "plan": {}}, 422, "history.observations.0.time"),
        ({"history": {"observations": [ROW] * 20_000}, "plan": {}}, 413, "history.observations"),
        ({"history": {"observations": [ROW | {"values": MANY}]}, "plan": {}}, 413, "history.observations.0.values"),
        ({"history": {"observations": [ROW], "static": MANY}, "plan": {}}, 413, "history.static"),
        (
            {"history": {"observations": [ROW], "treatments": [{}] * 5_000}, "plan": {}},
            422,
            "history.treatments.0.treatment",
        ),
        ([1] * 300_000, 413, "body"),
    ],
    ids=lambda value: "" if isinstance(value, (dict, list)) else None,
)
def test_what_is_wrong_a_thousand_times_is_refused_at_the_first(client, body, status, field, monkeypatch):
    found = []
    monkeypatch.setattr(app, "as_problem", lambda errors: found.extend(errors) or problems.as_problem(errors))
    answer = client.post("/api/predict", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (status, field)
    assert len(found) <= 10


def test_of_many_plans_the_outline_is_looked_at_first(client):
    plans = {str(number): {"doses": [{}] * 10} for number in range(20_000)}
    answer = client.post("/api/compare", json=WHO | {"plans": plans})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (413, "plans")


def test_of_many_flaws_some_are_listed_and_the_others_counted(client):
    strange = {f"part {number}": 0 for number in range(70)}
    said = client.post("/api/predict", json=WHO | {"plan": {}} | strange).json()
    assert len(said["errors"]) == 50
    assert said["detail"].endswith("; and 20 more flaws")


def test_what_is_to_be_mended_is_found_in_one_go():
    """Of 20,000 flaws, comparing each with each would take minutes."""
    rows = [{"loc": ("body", "plan", "doses", number, "time"), "msg": "missing"} for number in range(20_000)]
    problem = problems.as_problem([{"loc": ("body", "plan", "doses"), "msg": "too short"}, *rows])
    assert [flaw.field for flaw in problem.errors[:2]] == ["plan.doses.0.time", "plan.doses.1.time"]
    assert "19,950 more flaws" in problem.detail
