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
