import tomllib

import polars as pl
import pytest

import counterpath as cp
from counterpath.cohort import draft_schema

WIDE = "subject_id,hours,pressure,rhythm,pulse\n1,0,61,sinus,\n1,2,67,,100\n2,0,70,flutter,90\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "observations.csv").write_text(WIDE)
    (tmp_path / "treatments.csv").write_text("subject_id,drug,start_time,end_time,rate\n1,drip,0.5,1.5,3\n")
    (tmp_path / "static.csv").write_text("subject_id,age,sex,futime\n1,30,f,9\n2,40,m,5\n")
    return tmp_path


def test_a_draft_can_be_read_as_it_is(folder):
    path = draft_schema(folder)
    assert path == folder / "schema.toml"
    cohort = cp.read_cohort(folder)
    assert [v.name for v in cohort.schema.outcomes] == ["pressure"]
    assert [(v.name, v.kind) for v in cohort.schema.covariates] == [("rhythm", "categorical"), ("pulse", "numeric")]
    assert [(v.name, v.kind) for v in cohort.schema.static] == [("age", "numeric"), ("sex", "categorical")]
    assert cohort.schema.time_unit == "hour"
    assert cohort.follow_up_end.tolist() == [9.0, 5.0]
    assert cohort.treatments.rows() == [(1, "drip", 0.5, 1.5, None, 3.0)]


def test_a_guess_is_called_a_guess(folder):
    text = draft_schema(folder).read_text()
    assert "'pressure' is only a guess" in text
    assert tomllib.loads(text)["columns"] == {
        "patient": "subject_id",
        "time": "hours",
        "treatment": "drug",
        "start": "start_time",
        "stop": "end_time",
    }


def test_a_named_outcome_is_no_guess(folder):
    text = draft_schema(folder, outcome="pulse").read_text()
    assert "guess" not in text
    assert cp.read_cohort(folder).schema.outcomes[0].name == "pulse"


def test_a_draft_of_a_long_table(tmp_path):
    long = pl.DataFrame(
        {"patient": ["a"] * 3, "time": [0, 0, 1], "variable": ["y", "mood", "y"], "value": ["1", "good", "2"]}
    )
    long.write_parquet(tmp_path / "observations.parquet")
    draft_schema(tmp_path)
    cohort = cp.read_cohort(tmp_path)
    assert cohort.observations.columns == ["patient", "time", "y", "mood"]


def test_an_existing_schema_is_kept(folder):
    (folder / "schema.toml").write_text("mine")
    with pytest.raises(cp.CohortError, match="there already"):
        draft_schema(folder)
    assert (folder / "schema.toml").read_text() == "mine"


@pytest.mark.parametrize(
    ("table", "outcome", "message"),
    [
        (WIDE, "presure", "no variable 'presure'. Did you mean 'pressure'"),
        (WIDE.replace("subject_id", "who"), None, "looks like the patient. Name it 'patient'"),
        (WIDE.replace("hours", "when"), None, "looks like a time. Name it 'time'"),
        ("patient,time,mood\n1,0,good\n", None, "no column of numbers that could be an outcome"),
    ],
)
def test_what_cannot_be_drafted(tmp_path, table, outcome, message):
    (tmp_path / "observations.csv").write_text(table)
    with pytest.raises(cp.CohortError, match=message):
        draft_schema(tmp_path, outcome=outcome)
    assert not (tmp_path / "schema.toml").exists()


def test_no_folder_to_draft_from(tmp_path):
    with pytest.raises(cp.CohortError, match="There is no folder"):
        draft_schema(tmp_path / "nowhere")


# --- numbers or categories


def drafted(folder, observations, **tables):
    for name, text in (tables | {"observations": observations}).items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return tomllib.loads(draft_schema(folder).read_text(encoding="utf-8"))


def kinds(variables):
    return {variable["name"]: variable["kind"] for variable in variables}


CRP = [*(str(i) for i in range(19)), "<0.5"]


def test_one_bad_cell_does_not_make_a_category_of_numbers(tmp_path):
    rows = "".join(f"1,{i},{i},{crp}\n" for i, crp in enumerate(CRP))
    schema = drafted(tmp_path, f"patient,time,y,crp\n{rows}", static="patient,age\n1,70\n2,80\n3,ca. 90\n")
    assert kinds(schema["covariates"]) == {"crp": "numeric"}
    assert kinds(schema["static"]) == {"age": "numeric"}
    with pytest.raises(cp.CohortError, match=r"Patient 1: 1 value of 'crp' is text \(such as '<0.5'\)"):
        cp.read_cohort(tmp_path)


def test_one_rule_for_long_tables_and_wide_ones(tmp_path):
    rows = "".join(f"1,{i},y,{i}\n1,{i},crp,{crp}\n1,{i},mood,m{i % 3}\n" for i, crp in enumerate(CRP))
    schema = drafted(tmp_path, f"patient,time,variable,value\n{rows}")
    assert kinds(schema["covariates"]) == {"crp": "numeric", "mood": "categorical"}
    with pytest.raises(cp.CohortError, match="1 value of 'crp' is text"):
        cp.read_cohort(tmp_path)


def test_an_empty_column_is_no_category_and_no_outcome(tmp_path):
    schema = drafted(tmp_path, "patient,time,z,mood,y\n1,0,,good,1\n1,1,,bad,2\n")
    assert kinds(schema["covariates"]) == {"z": "numeric", "mood": "categorical"}
    assert schema["outcomes"][0]["name"] == "y"


# --- the end of follow-up

NUMBERED = "patient,time,y\n1,0,1\n1,5,2\n2,0,3\n2,4,5\n3,0,1\n3,3,1\n"
DATED = "patient,time,y\n1,2024-01-01 08:00,1\n1,2024-01-03 14:00,2\n2,2024-02-01 10:00,3\n"
ONCE = "patient,time,y\n1,0,1\n2,0,3\n3,0,1\n"


@pytest.mark.parametrize(
    ("observations", "static", "end"),
    [
        (NUMBERED, "patient,death\n1,0\n2,1\n3,0\n", None),
        (ONCE, "patient,death\n1,0\n2,1\n3,0\n", None),
        (NUMBERED, "patient,death\n1,no\n2,yes\n3,no\n", None),
        (NUMBERED, "patient,death\n1,true\n2,false\n3,true\n", None),
        (NUMBERED, "patient,death\n1,2024-01-09\n2,2024-01-09\n3,\n", None),
        (NUMBERED, "patient,discharge\n1,2\n2,2\n3,9\n", None),
        (NUMBERED, "patient,discharge\n1,\n2,\n3,\n", None),
        (NUMBERED, "patient,death\n1,5\n2,9\n3,\n", "death"),
        (NUMBERED, "patient,discharge\n1,8\n2,9\n3,2\n", "discharge"),
        (NUMBERED, "patient,Death,futime\n1,0,8\n2,1,9\n3,0,7\n", "futime"),
        (DATED, "patient,discharge\n1,2024-01-03 18:00\n2,2024-02-03 10:00\n", "discharge"),
        (DATED, "patient,discharge\n1,2024-01-03\n2,2024-02-01\n", "discharge"),
        (DATED, "patient,discharge\n1,2\n2,5\n", None),
    ],
)
def test_an_end_of_follow_up_is_a_time_after_the_records(tmp_path, observations, static, end):
    schema = drafted(tmp_path, observations, static=static)
    assert schema.get("follow_up_end") == end
    columns = static.splitlines()[0].split(",")[1:]
    assert [variable["name"] for variable in schema["static"]] == [name for name in columns if name != end]


# --- the time of a treatment


@pytest.mark.parametrize(
    ("observations", "treatments", "start"),
    [
        (NUMBERED, "patient,treatment,given_at,dose\n1,pill,0.5,5\n", "given_at"),
        (NUMBERED, "patient,treatment,day,dose\n1,pill,0.5,5\n", "day"),
        (NUMBERED, "patient,treatment,dosing_time,weight\n1,pill,0.5,5\n", "dosing_time"),
        (DATED, "patient,treatment,administered,dose\n1,pill,2024-01-02 09:00,5\n", "administered"),
        (NUMBERED, "patient,treatment,time,entered_at\n1,pill,0.5,5\n", None),
        (NUMBERED, "patient,treatment,start,entered_at\n1,pill,0.5,5\n", None),
        (NUMBERED, "patient,treatment,weight,dose\n1,pill,0.5,5\n", None),
        (DATED, "patient,treatment,ordered,administered\n1,pill,2024-01-02,2024-01-03\n", None),
    ],
)
def test_the_time_of_treatments_under_another_name(tmp_path, observations, treatments, start):
    schema = drafted(tmp_path, observations, treatments=treatments)
    assert schema.get("columns", {}).get("start") == start
    if start is not None:
        assert cp.read_cohort(tmp_path).events.rows == 1
