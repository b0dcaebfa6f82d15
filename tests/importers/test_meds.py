"""From files of the Medical Event Data Standard to a cohort: small made-up ones, and the public demo of MIMIC-IV."""

import json
from functools import partial
from itertools import chain

import numpy as np
import polars as pl
import pytest
from small_meds import SPEC, person, row, stay, write_meds

import counterpath as cp
from counterpath.importers import read_spec


@pytest.fixture
def write(tmp_path):
    return partial(write_meds, tmp_path / "meds")


def read(folder, spec=SPEC, **options):
    return cp.read_meds(folder, spec, progress=False, **options)


def test_a_stay_becomes_a_patient(write):
    cohort = read(write(person() + stay()))
    assert cohort.patients.to_list() == ["1/7"]
    assert cohort.schema.outcomes[0].unit == "mmHg"
    np.testing.assert_array_equal(cohort.records.times, [1.0, 2.0, 5.0])
    np.testing.assert_array_equal(cohort.records.values[:, 0], [80.0, np.nan, 70.0])
    np.testing.assert_array_equal(cohort.follow_up_end, [10.0])
    static = cohort.static.row(0, named=True)
    assert static["sex"] == "F"
    assert static["age"] == pytest.approx(40.0)
    assert not cohort.repairs


def test_a_titration_leaves_no_gap(write):
    """The new rate is listed before the end of the old, at the same instant."""
    given = read(write(person() + stay())).treatments.filter(pl.col("treatment") == "drug").sort("start")
    assert given.select("start", "stop", "rate").rows() == [(1.0, 3.0, 2.0), (3.0, 6.0, 4.0)]


def test_without_numbers_of_orders_the_first_start_belongs_to_the_first_end(write):
    spec = SPEC | {"treatments": {"drug": SPEC["treatments"]["drug"] | {"pair_by": []}}}
    given = read(write(person() + stay()), spec).treatments.sort("start")
    assert given.select("start", "stop", "rate").rows() == [(1.0, 3.0, 2.0), (3.0, 6.0, 4.0)]


def test_rates_that_run_at_once_add_up(write):
    rows = person() + stay()
    rows[-2:-2] = [
        row(1, 5.0, "DRUG//ON", 1.0, unit="mg/h", stay=7, order=99),
        row(1, 5.5, "DRUG//OFF", 1.0, unit="mg", stay=7, order=99),
    ]
    given = read(write(rows)).treatments.filter(pl.col("treatment") == "drug").sort("start")
    assert given["start"].to_list() == [1.0, 3.0, 5.0, 5.5]
    np.testing.assert_allclose(given["rate"], [2.0, 4.0, 5.0, 4.0])


def test_stays_of_a_person_are_never_in_two_parts(write):
    rows = [person(s) + stay(s, 10 * s + 1) + stay(s, 10 * s + 2, begin=100.0) for s in range(1, 21)]
    cohort = read(write(list(chain(*rows[:10])), list(chain(*rows[10:]))))
    assert len(cohort) == 40
    parts = cohort.split((0.5, 0.5), seed=0)
    whose = [{patient.split("/")[0] for patient in part.patients} for part in parts]
    assert [len(part) for part in parts] == [20, 20]
    assert not whose[0] & whose[1]


def test_the_separator_stays_with_a_saved_cohort(write, tmp_path):
    read(write(person() + stay())).save(tmp_path / "cohort")
    assert cp.read_cohort(tmp_path / "cohort").schema.stay_separator == "/"


def test_a_file_in_which_nobody_has_a_stay(write):
    folder = write(person(1) + stay(1), [*person(2), row(2, 1.0, "LAB//art", 80.0)])
    with pytest.warns(cp.CohortWarning, match="outside of any stay"):
        cohort = read(folder)
    assert cohort.patients.to_list() == ["1/7"]
    assert [(repair.code, repair.patients) for repair in cohort.repairs] == [("meds-outside-stay", ("2",))]


def test_a_stay_without_a_number_goes_by_time(write):
    spec = SPEC | {"stay": {"begins": "re:IN//.*", "ends": "OUT", "longest": 4.5}}
    drug = SPEC["treatments"]["drug"] | {"pair_by": ["order"]}
    spec |= {"treatments": {"drug": drug}}
    with pytest.warns(cp.CohortWarning, match="after the longest time of a stay"):
        cohort = read(write(person() + stay(1, 7) + stay(1, 8, begin=20.0)), spec)
    assert {repair.code: repair.count for repair in cohort.repairs} == {"meds-after-longest": 2}
    assert cohort.patients.to_list() == ["1/1", "1/2"]
    np.testing.assert_array_equal(cohort.follow_up_end, [4.5, 4.5])
    np.testing.assert_array_equal(cohort.records.times, [1.0, 2.0, 1.0, 2.0])
    assert cohort.treatments["stop"].max() == 4.5


def test_only_one_part_of_the_data_set(write):
    folder = write(person(1) + stay(1), person(2) + stay(2))
    (folder / "metadata").mkdir()
    table = pl.DataFrame({"subject_id": [1, 2], "split": ["train", "held_out"]})
    table.write_parquet(folder / "metadata" / "subject_splits.parquet")
    assert read(folder, split="held_out").patients.to_list() == ["2/7"]
    with pytest.raises(cp.CohortError, match=r"Nobody is in 'held out'\. Did you mean 'held_out'\?"):
        read(folder, split="held out")


def test_without_stays_a_subject_is_a_patient(write):
    spec = {key: value for key, value in SPEC.items() if key != "stay"}
    cohort = read(write(person() + stay()), spec)
    assert cohort.patients.to_list() == [1] or cohort.patients.to_list() == ["1"]
    np.testing.assert_array_equal(cohort.records.times, [0.0, 1.0, 4.0])


def test_a_spec_may_be_a_file(write, tmp_path):
    folder = write(person() + stay())
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    assert len(read(folder, tmp_path / "spec.json")) == 1
    assert len(read(folder, str(tmp_path / "spec.json"))) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"outcome": {}}, "outcome"),
        ({"outcome": {"y": {"codes": "re:("}}}, "is not a regular expression"),
        ({"treatments": {"drug": {"starts": "A"}}}, "both `starts` and `ends`"),
        ({"outcomes": {}}, "outcomes"),
    ],
)
def test_a_wrong_spec_says_where(changed, message):
    with pytest.raises(cp.CohortError, match=message):
        read_spec(SPEC | changed)


def test_a_spec_that_is_not_there():
    with pytest.raises(cp.CohortError, match=r"Did you mean 'icu-haemodynamics'\?"):
        read_spec("icu-hemodynamics")


# Files that are not as they should be: one clear error each


@pytest.mark.parametrize(
    ("drop", "casts", "message"),
    [
        (["code"], {}, "Missing required columns: code"),
        ([], {"subject_id": pl.String}, "subject_id"),
        (["order"], {}, "has no column 'order', which the spec names"),
    ],
)
def test_columns_that_are_missing_or_of_another_type(write, drop, casts, message):
    with pytest.raises(cp.CohortError, match=message):
        read(write(person() + stay(), drop=drop, **casts))


def test_times_that_are_not_in_order(write):
    rows = person() + stay()
    rows[4], rows[9] = rows[9], rows[4]
    with pytest.raises(cp.CohortError, match=r"times of subject 1 are not in order"):
        read(write(rows))


def test_subjects_whose_rows_do_not_stand_together(write):
    with pytest.raises(cp.CohortError, match="do not stand together"):
        read(write(stay(1) + stay(2) + [row(1, 50.0, "PILL", 1.0)]))


def test_a_subject_in_two_files(write):
    with pytest.raises(cp.CohortError, match=r"Subject 1 is in 0\.parquet and in 1\.parquet"):
        read(write(person() + stay(), stay(1, 8)))


def test_rows_without_a_code(write):
    with pytest.raises(cp.CohortError, match="has rows without a code, the first of subject 1"):
        read(write([*stay(), row(1, 11.0, None)]))


def test_units_that_the_spec_does_not_know(write):
    rows = person() + stay()
    rows[6] = row(1, 3.0, "DRUG//ON", 4.0, unit="mcg/h", stay=7, order=72)
    with pytest.raises(cp.CohortError, match=r"mg/h \(1 row\) and mcg/h \(1 row\).*units = \{ \"mcg/h\" = … \}"):
        read(write(rows))
    drug = SPEC["treatments"]["drug"] | {"units": {"mcg/h": 0.001}}
    known = read(write(rows), SPEC | {"treatments": {"drug": drug}})
    np.testing.assert_allclose(known.treatments.sort("start")["rate"], [2.0, 0.004])


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(cp.CohortError, match="has no folder `data`"):
        read(tmp_path)


def test_a_file_that_is_damaged(write):
    folder = write(person() + stay())
    (file,) = folder.rglob("*.parquet")
    whole = file.read_bytes()
    for damaged in (b"hi", whole[: len(whole) // 2], whole[:40] + bytes(len(whole) - 400) + whole[-360:]):
        file.write_bytes(damaged)
        with pytest.raises(cp.CohortError, match=r"0\.parquet is damaged, or no Parquet file"):
            read(folder)


def test_a_stay_that_never_begins(write):
    with pytest.raises(cp.CohortError, match="No code that begins a stay was found"):
        read(write(person() + stay()), SPEC | {"stay": {"begins": "ADMITTED"}})


# What can be lived with: counted, and said


@pytest.mark.parametrize(
    ("place", "instead", "code"),
    [
        (10, None, "meds-no-end"),
        (4, None, "meds-no-start"),
        (3, row(1, 1.0, "LAB//art", 900.0, stay=7), "meds-out-of-range"),
        (3, row(1, 1.0, "LAB//art", None, stay=7), "meds-no-value"),
        (2, row(1, -5.0, "LAB//art", 80.0, stay=7), "meds-outside-stay"),
    ],
)
def test_what_is_left_out_is_counted(write, place, instead, code):
    rows = person() + stay()
    if code == "meds-outside-stay":
        rows.insert(place, instead)
    elif instead is None:
        del rows[place]
    else:
        rows[place] = instead
    with pytest.warns(cp.CohortWarning):
        cohort = read(write(rows))
    assert [(repair.code, repair.count) for repair in cohort.repairs] == [(code, 1)]


def test_an_interval_without_an_end_lasts_until_follow_up_ends(write):
    rows = person() + stay()
    del rows[10]
    with pytest.warns(cp.CohortWarning, match="no end"):
        cohort = read(write(rows))
    assert cohort.treatments.filter(pl.col("treatment") == "drug").sort("start")["stop"].to_list() == [3.0, 10.0]


def test_where_follow_up_has_no_end_neither_has_an_interval_that_lost_its_own(write):
    """The next begins while it runs: their rates add up, as they do within a stay."""
    rows = person() + stay()
    del rows[7], rows[-1]  # the end of the first rate, and of the stay
    with pytest.warns(cp.CohortWarning, match="no end"):
        cohort = read(write(rows))
    given = cohort.treatments.filter(pl.col("treatment") == "drug").sort("start")
    assert given["start"].to_list() == [1.0, 3.0, 6.0]
    assert given["rate"].to_list() == [2.0, 6.0, 2.0]


@pytest.mark.parametrize("value", [None, float("nan")])
def test_a_rate_without_a_number_is_left_out_and_counted(write, value):
    rows = person() + stay()
    rows[4] = row(1, 1.0, "DRUG//ON", value, unit="mg/h", stay=7, order=71)
    with pytest.warns(cp.CohortWarning, match="1 record of drug has no number"):
        cohort = read(write(rows))
    given = cohort.treatments.filter(pl.col("treatment") == "drug")
    assert given.select("start", "stop", "rate").rows() == [(3.0, 6.0, 4.0)]


def test_a_dose_without_a_number_is_left_out_and_counted(write):
    with pytest.warns(cp.CohortWarning, match="1 record of pill has no number"):
        cohort = read(write([*person(), *stay()[:-1], row(1, 8.0, "PILL"), stay()[-1]]))
    given = cohort.treatments.filter(pl.col("treatment") == "pill")
    assert given.select("start", "dose").rows() == [(4.0, 5.0)]


def test_what_never_has_a_number_was_given_or_not(write):
    def silent(own):
        return (*own[:3], None, *own[4:]) if own[2] in ("DRUG//ON", "PILL") else own

    first, second = ([silent(own) for own in person(subject) + stay(subject, subject + 6)] for subject in (1, 2))
    given = read(write(first, second)).treatments
    assert given.filter(pl.col("treatment") == "pill")["dose"].to_list() == [1.0, 1.0]
    assert given.filter(pl.col("treatment") == "drug")["rate"].to_list() == [1.0] * 4
    of_pill, of_drug = "1 record of pill has no number", "2 records of drug have no number"
    with pytest.warns(cp.CohortWarning, match=of_pill), pytest.warns(cp.CohortWarning, match=of_drug):
        cohort = read(write(first, person(2) + stay(2, 8)))
    assert set(cohort.treatments["patient"]) == {"2/8"}


def test_what_has_no_time_is_left_out_and_counted(write):
    rows = [row(1, None, "LAB//art", 75.0, stay=7), row(1, None, "DRUG//ON", 1.0, unit="mg/h", stay=7), *person()]
    with pytest.warns(cp.CohortWarning, match="has no time"):
        cohort = read(write(rows + stay()))
    assert [(repair.code, repair.count) for repair in cohort.repairs] == [("meds-no-time", 1)] * 2
    assert cohort.records.times.tolist() == [1.0, 2.0, 5.0]


def test_an_end_before_its_start_is_left_out(write):
    rows = person() + stay()
    early = row(1, 0.5, "DRUG//OFF", 4.0, unit="mg", stay=7, order=71)
    rows = [*rows[:3], early, *(own for own in rows[3:] if own[2:3] + own[6:] != ("DRUG//OFF", 71))]
    with pytest.warns(cp.CohortWarning):
        cohort = read(write(rows))
    assert [(repair.code, repair.count) for repair in cohort.repairs] == [("meds-no-end", 1), ("meds-no-start", 1)]


def test_orders_that_are_missing_as_nan_are_missing(write, tmp_path):
    """Some packages write numbers of which some are missing as floats."""
    rows = [(*own[:6], None if "DRUG" in own[2] else own[6]) for own in person() + stay()]
    with_nulls = read(write(rows))
    folder = write(rows, order=pl.Float64)
    (path,) = folder.rglob("*.parquet")
    pl.read_parquet(path).with_columns(pl.col("order").fill_null(float("nan"))).write_parquet(path)
    given = read(folder).treatments
    assert given.equals(with_nulls.treatments)
    drug = given.filter(pl.col("treatment") == "drug").select("start", "stop", "rate")
    assert drug.rows() == [(1.0, 3.0, 2.0), (3.0, 6.0, 4.0)]


def test_what_the_spec_names_and_nobody_has_is_named(write):
    extra = {
        "static": SPEC["static"] | {"weight": {"codes": "WEIGHT", "value": "number"}},
        "covariates": SPEC["covariates"] | {"lactate": {"codes": "LAB//lactate", "unit": "mmol/L"}},
        "treatments": SPEC["treatments"] | {"other": {"codes": "OTHER", "unit": "mg"}},
    }
    with pytest.warns(cp.CohortWarning) as said:
        cohort = read(write(person() + stay()), SPEC | extra)
    assert [str(warning.message) for warning in said] == [
        "Nobody has a value of 'lactate'.",
        "Nobody has a value of 'weight'.",
        "Nobody was given 'other'.",
    ]
    assert [repair.code for repair in cohort.repairs] == ["meds-absent"] * 3
    assert [variable.name for variable in cohort.schema.covariates] == ["rate"]
    assert [treatment.name for treatment in cohort.schema.treatments] == ["drug", "pill"]


def test_an_outcome_that_nobody_has_is_an_error(write):
    spec = SPEC | {"outcome": SPEC["outcome"] | {"lactate": {"codes": "LAB//lactate"}}}
    with pytest.raises(cp.CohortError, match="No usable record of lactate was found"):
        read(write(person() + stay()), spec)
