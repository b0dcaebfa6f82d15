from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import counterpath as cp
from counterpath.cohort import folder as folder_module

SCHEMA = 'time_unit = "day"\noutcomes = [{ name = "y" }]\n'


def write(folder, **tables):
    folder.mkdir(exist_ok=True)
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def rich(read):
    """Of everything something: categories, gaps, doses, an open interval, bounds, follow-up, repairs."""
    return read(
        {
            "patient": ["b", "b", "b", "a", "a"],
            "time": [datetime(2031, 1, d) for d in (1, 1, 4, 2, 3)],
            "y": [0.1, 0.3, None, 1e-300, 7.0],
            "n": [1, 2, 3, None, 2**40],
            "mood": ["ok", None, 'sö "so"\n\t', "", "Ω"],
            "up": [True, None, False, True, None],
        },
        {
            "patient": ["a", "b", "b"],
            "treatment": ["drip", "pill", "drip"],
            "start": [datetime(2031, 1, 2, 6), datetime(2031, 1, 1), datetime(2031, 1, 2)],
            "stop": [None, None, datetime(2031, 1, 3)],
            "dose": [None, 2.5, None],
            "rate": [0.5, None, 0.1 + 0.2],
        },
        {"patient": ["a", "b"], "end": [None, datetime(2031, 2, 1)], "arm": [1, 2], "age": [None, 61.5]},
        duplicates="last",
        follow_up_end="end",
        categorical="arm",
        bounds={"y": (0.0, None)},
        units={"y": "mg/L", "pill": "mg"},
        randomised=True,
    )


def test_save_and_load_lose_nothing(rich, tmp_path):
    rich.save(tmp_path / "cohort")
    loaded = cp.Cohort.load(tmp_path / "cohort")
    assert loaded.equals(rich)
    assert loaded.describe().equals(rich.describe())
    assert loaded.repairs == rich.repairs
    assert [r.code for r in loaded.repairs] == ["duplicate_times"]
    assert sorted(p.name for p in (tmp_path / "cohort").iterdir()) == [
        "observations.parquet",
        "schema.toml",
        "static.parquet",
        "treatments.parquet",
    ]


def test_equals_sees_every_part(rich, ward):
    history = rich.until({"a": 1.0, "b": 3.0})
    assert rich.equals(rich[:])
    assert not rich.equals(rich[::-1])
    assert not rich.equals(history)
    assert not rich.equals(ward)


@pytest.mark.parametrize(
    "derive",
    [
        lambda c: c[::-1],
        lambda c: c[["a"]],
        lambda c: c.until({"a": 1.0, "b": 3.0}),
        lambda c: c.until({"a": 0.0, "b": 0.0}),
    ],
    ids=["reversed", "one", "history", "first moment"],
)
def test_parts_of_a_cohort_survive_too(rich, tmp_path, derive):
    part = derive(rich)
    part.save(tmp_path / "part")
    assert cp.read_cohort(tmp_path / "part").equals(part)


def test_the_ward_survives(ward, tmp_path):
    ward.save(tmp_path / "ward")
    assert cp.read_cohort(tmp_path / "ward").equals(ward)


@pytest.mark.parametrize(("kind", "frame"), [("pandas", pd.DataFrame), ("pyarrow", pa.Table), ("polars", pl.DataFrame)])
def test_a_folder_is_given_back_as_the_kind_that_was_asked_for(rich, tmp_path, kind, frame):
    rich.save(tmp_path / "c")
    assert isinstance(cp.read_cohort(tmp_path / "c", frames=kind).observations, frame)


# --- whole or not at all


def content(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_an_existing_folder_is_kept_unless_asked(rich, ward, tmp_path):
    rich.save(tmp_path / "c")
    before = content(tmp_path / "c")
    with pytest.raises(cp.CohortError, match=r"exists. Choose another name, or pass overwrite=True"):
        ward.save(tmp_path / "c")
    assert content(tmp_path / "c") == before
    ward.save(tmp_path / "c", overwrite=True)
    assert cp.read_cohort(tmp_path / "c").equals(ward)
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize("names", [["thesis.tex"], ["schema.toml", "thesis.tex"], ["schema.toml", "observations.xlsx"]])
def test_a_foreign_folder_is_never_replaced(rich, tmp_path, names):
    foreign = tmp_path / "home"
    foreign.mkdir()
    for name in names:
        (foreign / name).write_text("years of work")
    with pytest.raises(cp.CohortError, match="other things than a cohort and will not be replaced"):
        rich.save(foreign, overwrite=True)
    assert sorted(content(foreign)) == sorted(names)


def test_a_file_is_never_replaced(rich, tmp_path):
    (tmp_path / "c").write_text("a file")
    with pytest.raises(cp.CohortError, match="will not be replaced"):
        rich.save(tmp_path / "c", overwrite=True)
    assert (tmp_path / "c").read_text() == "a file"


def test_an_empty_folder_may_be_filled(rich, tmp_path):
    (tmp_path / "c").mkdir()
    rich.save(tmp_path / "c", overwrite=True)
    assert cp.read_cohort(tmp_path / "c").equals(rich)


def test_missing_parents_are_made(rich, tmp_path):
    rich.save(tmp_path / "deep" / "down" / "c")
    assert cp.read_cohort(tmp_path / "deep" / "down" / "c").equals(rich)


def fail(*args, **kwargs):
    raise OSError("No space left on device")


def test_a_failure_while_writing_leaves_the_old_one_and_no_rubbish(rich, ward, tmp_path, monkeypatch):
    rich.save(tmp_path / "c")
    before = content(tmp_path / "c")
    monkeypatch.setattr(folder_module, "schema_text", fail)  # after the tables were written
    with pytest.raises(OSError, match="No space"):
        ward.save(tmp_path / "c", overwrite=True)
    with pytest.raises(OSError, match="No space"):
        ward.save(tmp_path / "new")
    assert content(tmp_path / "c") == before
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


def test_a_failure_between_the_two_renames_leaves_the_old_one(rich, ward, tmp_path, monkeypatch):
    rich.save(tmp_path / "c")
    rename, calls = Path.replace, []

    def fail_the_second_time(self, target):
        calls.append(target)
        return fail() if len(calls) == 2 else rename(self, target)

    monkeypatch.setattr(Path, "replace", fail_the_second_time)
    with pytest.raises(OSError, match="No space"):
        ward.save(tmp_path / "c", overwrite=True)
    monkeypatch.undo()
    assert cp.read_cohort(tmp_path / "c").equals(rich)
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


# --- folders that people write


def test_a_csv_folder(tmp_path):
    folder = write(
        tmp_path / "c",
        observations="patient,time,y,rhythm\nW01,2024-01-01 08:00,1,sinus\n"
        "W01,2024-01-02 08:00,3,.\nW02,2024-01-05,2,\n",
        treatments="patient,treatment,start,stop,rate\nW01,drip,2024-01-01 20:00,2024-01-02 20:00,0.5\n",
        static="patient,sex,born\nW01,f,1950-02-03\nW02,NaN,\n",
    )
    cohort = cp.read_cohort(folder)
    assert cohort.records.times.tolist() == [0.0, 1.0, 0.0]
    assert cohort.observations["rhythm"].to_list() == ["sinus", None, None]
    assert (cohort.events.start[0], cohort.events.stop[0]) == (0.5, 1.5)
    assert cohort.static["sex"].to_list() == ["f", None]
    assert cohort.static["born"].to_list() == ["1950-02-03", None]


def test_parquet_and_csv_may_stand_side_by_side(tmp_path):
    folder = write(tmp_path / "c", static="patient,age\n1,30\n")
    pl.DataFrame({"patient": [1], "time": [0.0], "y": [np.nan], "x": [1.0]}).write_parquet(
        folder / "observations.parquet"
    )
    cohort = cp.read_cohort(folder)
    assert cohort.static["age"].to_list() == [30]
    assert np.isnan(cohort.records.values[0, 0])


@pytest.mark.parametrize(
    ("text", "ids"),
    [(("007", "7"), ["007", "7"]), (("7", "12"), [7, 12]), (("W01", "7"), ["W01", "7"]), (("-3", "0"), [-3, 0])],
)
def test_007_stays_text_and_7_is_a_number(tmp_path, text, ids):
    table = f"patient,time,y\n{text[0]},0,1\n{text[1]},0,2\n"
    assert cp.read_cohort(write(tmp_path / "c", observations=table)).patients.to_list() == ids


def test_numbers_are_text_where_another_csv_table_has_text(tmp_path):
    folder = write(
        tmp_path / "c",
        observations="patient,time,y\n7,0,1\nA1,0,2\n",
        treatments="patient,treatment,time\n7,pill,1\n",
    )
    assert cp.read_cohort(folder).treatments["patient"].to_list() == ["7"]


def test_007_is_not_7(tmp_path):
    folder = write(
        tmp_path / "c", observations="patient,time,y\n007,0,1\n", treatments="patient,treatment,time\n7,pill,1\n"
    )
    with pytest.raises(cp.CohortError, match="patient 7, of whom nothing was observed"):
        cp.read_cohort(folder)


def test_origins_follow_the_patient_and_not_the_row(rich, tmp_path):
    rich.save(tmp_path / "c")
    path = tmp_path / "c" / "static.parquet"
    pl.read_parquet(path).reverse().write_parquet(path)
    assert cp.read_cohort(tmp_path / "c").origins.equals(rich.origins)


def test_errors_name_the_folder(tmp_path):
    folder = write(tmp_path / "c", observations="patient,time,z\n1,0,1\n")
    with pytest.raises(cp.CohortError, match=f"{folder}: The observations table has no column 'y'"):
        cp.read_cohort(folder)


def test_repairs_can_be_asked_for_in_the_schema(tmp_path):
    folder = write(tmp_path / "c", observations="patient,time,y\n1,0,1\n1,0,3\n")
    with (folder / "schema.toml").open("a") as schema:
        schema.write('[repairs]\nduplicates = "mean"\n')
    cohort = cp.read_cohort(folder)
    assert cohort.records.values[0, 0] == 2.0
    assert [r.code for r in cohort.repairs] == ["duplicate_times"]


def test_a_cohort_without_patients_is_not_saved(ward, tmp_path):
    with pytest.raises(cp.CohortError, match="without patients"):
        ward[:0].save(tmp_path / "empty")
    assert not (tmp_path / "empty").exists()


# --- CSV as spreadsheets write it


@pytest.mark.parametrize("mark", [";", "\t", ","])
def test_the_separator_is_found_in_the_header(tmp_path, mark):
    text = "patient,time,y,note\n1,0,1.5,ok\n1,2,2.5,a|b\n".replace(",", mark)
    cohort = cp.read_cohort(write(tmp_path / "c", observations=text))
    assert cohort.observations.rows() == [(1, 0.0, 1.5, "ok"), (1, 2.0, 2.5, "a|b")]


def test_a_semicolon_in_a_comma_separated_table_is_text(tmp_path):
    text = "patient,time,y,note;remark\n1,0,1,a;b\n"
    assert cp.read_cohort(write(tmp_path / "c", observations=text)).observations["note;remark"].to_list() == ["a;b"]


def test_decimal_commas_between_semicolons_are_named(tmp_path):
    with pytest.raises(cp.CohortError, match=r"such as '3,4'.*Write decimals with a point"):
        cp.read_cohort(write(tmp_path / "c", observations="patient;time;y\n1;0;3,4\n"))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
@pytest.mark.parametrize("rows", [1, 5000])  # beyond what is read to see the header
def test_another_encoding_is_refused_with_the_remedy(tmp_path, encoding, rows):
    text = "patient,time,y,mood\n" + "1,0,1,ok\n" * rows + "2,0,1,müde\n"
    folder = write(tmp_path / "c")
    (folder / "observations.csv").write_bytes(text.encode(encoding))
    with pytest.raises(cp.CohortError, match=r"observations.csv is not UTF-8. Save it as UTF-8."):
        cp.read_cohort(folder)


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path):
    assert len(cp.read_cohort(write(tmp_path / "c", observations="\ufeffpatient,time,y\n1,0,1\n"))) == 1


@pytest.mark.parametrize(
    ("header", "said"),
    [("patient,time,y,y", "two columns called 'y'"), ('patient,time,"y",y', "'y'"), ("patient,y,,", "without a name")],
)
def test_two_columns_of_one_name(tmp_path, header, said):
    folder = write(tmp_path / "c", observations=f"{header}\n1,0,1,2\n")
    with pytest.raises(cp.CohortError, match=f"observations.csv has .*{said}.*Rename or remove one"):
        cp.read_cohort(folder)
