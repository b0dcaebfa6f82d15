"""Tables of one's own: a record as the library reads it, with what it loses; what is wrong is said of its table."""

import numpy as np
import pytest
from running_explorer import ready

import counterpath as cp

pytestmark = pytest.mark.slow  # a model is trained

PLAN = {"doses": [{"treatment": "chemotherapy", "time": 0.0, "dose": 5.0}, {"treatment": "radiotherapy", "time": 2.5}]}
HORIZONS = [1.0, 2.5, 5.0]
ASKED = {"patient": "P/2", "at": 50.0, "horizons": HORIZONS}


@pytest.fixture(scope="module")
def ward():
    with ready(cp.LastValue(5.0).fit(cp.load_example_ward())) as client:
        yield client


def test_a_table_becomes_a_record(client, cohort):
    own = cohort[["P/2"]]
    tables = {
        "observations": own.observations.write_csv(),
        "treatments": own.treatments.write_csv(),
        "static": own.static.select("patient", "subgroup").write_csv(),
    }
    read = client.post("/api/history", json=tables).json()
    assert read["at"] == own.history_end[0]
    body = {"history": read["history"], "at": 50.0, "horizons": HORIZONS, "plan": PLAN}
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
        (
            {"observations": "time,tumor_volume\n0,1", "treatments": "treatment,start\nprayer,0"},
            "treatments",
            "'prayer' is not declared",
        ),
        ({"observations": "time,tumor_volume\n0,1", "static": "subgroup\nQ"}, "static", "'Q' is not a level"),
        ({"observations": "time,tumor_volume\n0,1\n2e9,1"}, "observations", "above 1e+09"),
        ({"observations": "time,tumor_volume\n2024-99-99,1"}, "observations", "is not a time"),
        ({"observations": "time,tumor_volume" + "," * 100_000 + "\n0,1"}, "observations", "100,002 columns are more"),
        ({"observations": '"' + "x" * 200_000}, "observations", "no CSV table"),
        ({}, "observations", "required"),
    ],
)
def test_a_wrong_table_is_said_of_its_field(client, tables, field, message):
    answer = client.post("/api/history", json={"static": "subgroup\nA", **tables})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field
    assert message in answer.json()["errors"][0]["message"]


def test_what_a_table_loses_is_said(client):
    tables = {
        "observations": "time,tumor_volume,mood\n0,1,3\n4,2,4",
        "treatments": "treatment,start,dose\nchemotherapy,1,5\nradiotherapy,4,2",
        "static": "subgroup\nA",
    }
    said = client.post("/api/history", json=tables).json()
    left_out, at_the_end = said["warnings"]
    assert left_out == "Left out of the observations table, since the model knows no such thing: mood."
    assert "1 treatment at the very end of the record" in at_the_end
    assert [event["treatment"] for event in said["history"]["treatments"]] == ["chemotherapy"]
    assert said["at"] == 4.0


def test_covariates_that_were_never_measured_may_be_left_out():
    model = cp.LastValue(5.0).fit(cp.load_example_ward())
    tables = {"observations": "time,pressure,heartrate\n0,80,70\n3,82,71", "static": "age,sex\n50,male"}
    with ready(model) as client:  # nor is anybody loaded
        said = client.post("/api/history", json=tables).json()
        assert said["warnings"] == [
            "Left out of the observations table, since the model knows no such thing: heartrate.",
            "Taken as never measured, since there is no such column: heart_rate, rhythm.",
        ]
        answer = client.post("/api/predict", json={"history": said["history"], "plan": {}})
        assert len(answer.json()["outlook"]["median"]) == 5


def test_a_table_may_have_dates(client):
    tables = {
        "observations": "time,tumor_volume\n2024-03-01,1\n2024-03-05,2",
        "treatments": "treatment,start,dose\nchemotherapy,2024-03-02,5",
        "static": "subgroup\nA",
    }
    said = client.post("/api/history", json=tables).json()
    assert [row["time"] for row in said["history"]["observations"]] == [0.0, 4.0]
    assert [event["start"] for event in said["history"]["treatments"]] == [1.0]


@pytest.mark.parametrize(
    ("others", "field", "said"),
    [
        (
            {"treatments": "patient,treatment,start,dose\nB,chemotherapy,1,5", "static": "patient,subgroup\nA,A"},
            "treatments",
            "'A' in the observations table, 'A' in the static table, 'B' in the treatments table",
        ),
        ({"static": "patient,subgroup\nC,A"}, "static", "'A' in the observations table, 'C' in the static table"),
    ],
)
def test_tables_of_different_patients_are_not_joined(client, others, field, said):
    answer = client.post("/api/history", json={"observations": "patient,time,tumor_volume\nA,0,1\nA,4,2"} | others)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    assert f"The tables are about different patients: {said}." in answer.json()["detail"]


def test_a_table_that_names_nobody_is_about_the_patient_of_the_others(client):
    tables = {
        "observations": "patient,time,tumor_volume\n17,0,1\n17,4,2",
        "treatments": "patient,treatment,start,dose\n17,chemotherapy,1,5",
        "static": "subgroup\nA",
    }
    assert client.post("/api/history", json=tables).status_code == 200


def test_a_row_per_value_loses_nothing_that_it_names(ward):
    rows = "time,variable,value\n0,pressure,80\n0,heart_rate,70\n3,pressure,82"
    said = ward.post("/api/history", json={"observations": rows, "static": "age,sex\n50,male"}).json()
    assert said["history"]["observations"][0]["values"] == {"pressure": 80.0, "heart_rate": 70.0}
    assert said["warnings"] == ["Taken as never measured, since there is no such row: rhythm."]
    strange = ward.post("/api/history", json={"observations": rows + "\n3,mood,4", "static": "age,sex\n50,male"}).json()
    assert strange["warnings"][0] == "Left out of the observations table, since the model knows no such thing: mood."


def test_an_end_of_follow_up_is_no_strange_column(ward):
    tables = {"observations": "time,pressure\n0,80\n3,82", "static": "age,sex,follow_up_end\n50,male,4"}
    assert not any("follow_up_end" in text for text in ward.post("/api/history", json=tables).json()["warnings"])
