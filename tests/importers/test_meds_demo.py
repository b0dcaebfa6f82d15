"""The public demo of MIMIC-IV as MEDS: the cohort has what one counts in the files without counterpath."""

import os
import re
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import counterpath as cp
from counterpath.importers import read_spec

DATA = Path(os.environ.get("COUNTERPATH_DATA", "there is none"))
FOLDER = DATA / "mimic-iv-demo-meds"
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.exists(), reason="COUNTERPATH_DATA names no folder with real data"),
]
PRESSURES = ["LAB//220051//mmHg", "LAB//220180//mmHg"]
DRUGS = {
    "norepinephrine": (221906, 947),
    "vasopressin": (222315, 55),
    "phenylephrine": (221749, 625),
    "dopamine": (221662, 28),
    "epinephrine": (221289, 36),
}
SECOND = 1 / 3_600  # hours


def read(spec):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.CohortWarning)
        return cp.read_meds(FOLDER, spec, progress=False)


@pytest.fixture(scope="module")
def cohort():
    return read("icu-haemodynamics")


@pytest.fixture(scope="module")
def unmerged():
    """With every record at its own time."""
    return read(read_spec("icu-haemodynamics").model_copy(update={"merge_within": 0.0}))


@pytest.fixture(scope="module")
def events():
    return pl.concat([pl.read_parquet(path) for path in sorted(FOLDER.glob("data/*/*.parquet"))])


@pytest.fixture(scope="module")
def stays(events):
    """`icustay_id`, `begin`, `end` (discharge or death), and the id that the cohort gives."""
    begin = events.filter(pl.col("code").str.starts_with("ICU_ADMISSION//"))
    end = events.filter(pl.col("code").str.starts_with("ICU_DISCHARGE//")).select("icustay_id", end="time")
    patient = pl.format("{}/{}", "subject_id", "icustay_id")
    found = begin.select("icustay_id", "subject_id", patient.alias("patient"), begin="time").join(end, on="icustay_id")
    death = events.filter(pl.col("code") == "MEDS_DEATH").select("subject_id", death="time")
    found = found.join(death, on="subject_id", how="left").with_columns(end=pl.min_horizontal("end", "death"))
    return found.drop("death", "subject_id")


def hours(later, earlier):
    return (pl.col(later) - pl.col(earlier)).dt.total_microseconds() / 3.6e9


def count(cohort, code, name):
    return sum(repair.count for repair in cohort.repairs if (repair.code, repair.columns) == (code, (name,)))


def test_a_hundred_patients_and_their_stays(cohort, events, stays):
    assert events["subject_id"].n_unique() == 100
    assert events.height == 916_166
    assert stays.height == 140
    pressures = events.filter(pl.col("code").is_in(PRESSURES))
    with_pressures = stays.filter(pl.col("icustay_id").is_in(pressures["icustay_id"].unique().implode()))
    assert with_pressures.height == 139
    assert sorted(cohort.patients) == sorted(with_pressures["patient"])
    assert {patient.split("/")[0] for patient in cohort.patients} <= set(events["subject_id"].cast(pl.String))
    assert count(cohort, "meds-no-outcome", "") == 0  # has no column
    (silent,) = [repair for repair in cohort.repairs if repair.code == "meds-no-outcome"]
    assert (silent.count, set(silent.patients)) == (1, set(stays["patient"]) - set(with_pressures["patient"]))


def test_every_pressure_is_there_at_its_time(unmerged, events, stays):
    """13,873 of them, 34 outside of stays, and the others as they are; two of one instant are their mean."""
    pressures = events.filter(pl.col("code").is_in(PRESSURES))
    assert pressures.height == 13_873
    inside = pressures.join(stays, on="icustay_id").filter(pl.col("time").is_between(pl.col("begin"), pl.col("end")))
    assert pressures.height - inside.height == count(unmerged, "meds-outside-stay", "diastolic_pressure") == 34
    possible = inside.filter(pl.col("numeric_value").is_between(10, 200))
    assert inside.height - possible.height == count(unmerged, "meds-out-of-range", "diastolic_pressure")
    by_hand = possible.with_columns(hour=hours("time", "begin")).group_by("patient", "hour")
    by_hand = by_hand.agg(pl.col("numeric_value").cast(pl.Float64).mean()).sort("patient", "hour")
    found = unmerged.observations.select("patient", "time", "diastolic_pressure").drop_nulls().sort("patient", "time")
    assert found["patient"].to_list() == by_hand["patient"].to_list()
    np.testing.assert_allclose(found["time"], by_hand["hour"], atol=SECOND / 1e3)
    np.testing.assert_allclose(found["diastolic_pressure"], by_hand["numeric_value"])


def test_merging_brings_records_of_a_minute_together(cohort, unmerged):
    """Most: of three within two minutes, the first two become one, and the third stays."""

    def near(one):
        return np.sum((np.diff(one.records.times) <= 0.02) & (np.diff(one.records.patient_of_row) == 0))

    assert near(unmerged) > 2_500
    assert near(cohort) < 0.1 * near(unmerged)
    there, before = (~np.isnan(one.records.values[:, 0]) for one in (cohort, unmerged))
    assert 0.95 * before.sum() < there.sum() <= before.sum()


def clipped(events, stays, code, patients):
    """Starts and ends of the same order within the stay: `patient`, `start` and `stop` in hours, `rate`.

    Where orders have no number, the first start of a stay belongs to its first end, and so on.
    """
    starts, ends = (
        events.filter(pl.col("code") == one)
        .sort("icustay_id", "time")
        .with_columns(order=pl.coalesce("order_id", pl.int_range(pl.len()).over("icustay_id")))
        for one in code
    )
    ends = ends.select("icustay_id", "order", until="time")
    both = starts.select("icustay_id", "order", "numeric_value", "time").join(ends, on=["icustay_id", "order"])
    assert both.height == starts.height == ends.height  # every order has one start and one end
    both = both.join(stays, on="icustay_id").filter(pl.col("patient").is_in(patients.implode()))
    both = both.with_columns(pl.max_horizontal("time", "begin"), pl.min_horizontal("until", "end"))
    both = both.filter(pl.col("time") < pl.col("until"))
    rate = pl.col("numeric_value").cast(pl.Float64)
    return both.select("patient", start=hours("time", "begin"), stop=hours("until", "begin"), rate=rate)


def covered(intervals):
    """Hours in which at least one of (patient, start, stop) runs, and in how many stretches without a gap."""
    total, stretches, whose, until = 0.0, 0, None, -np.inf
    for patient, start, stop in sorted(intervals):
        if patient != whose or start > until + SECOND / 2:
            stretches, until = stretches + 1, start
        total += max(stop - until, 0.0)
        whose, until = patient, max(stop, until)
    return total, stretches


@pytest.mark.parametrize("drug", DRUGS)
def test_vasopressors_are_given_as_long_and_as_much_as_the_files_say(cohort, events, stays, drug):
    item, number = DRUGS[drug]
    code = (f"INFUSION_START//{item}", f"INFUSION_END//{item}")
    assert [events.filter(pl.col("code") == one).height for one in code] == [number, number]
    expected = clipped(events, stays, code, cohort.patients)
    found = cohort.treatments.filter(pl.col("treatment") == drug).select("patient", "start", "stop", "rate")
    (time_by_hand, stretches_by_hand), (time, stretches) = (
        covered(rows.select("patient", "start", "stop").rows()) for rows in (expected, found)
    )
    assert time == pytest.approx(time_by_hand, abs=len(found) * SECOND / 1e3)
    assert stretches == stretches_by_hand
    given, given_by_hand = (
        (rows["rate"] * (rows["stop"] - rows["start"])).sum() for rows in (found, expected)
    )  # what ran at once adds up
    assert given == pytest.approx(given_by_hand, rel=1e-6)
    assert found["rate"].min() >= expected["rate"].min()


def test_ventilation_is_there_once(cohort, events, stays):
    code = ("PROCEDURE//START//225792", "PROCEDURE//END//225792")
    rows = events.filter(pl.col("code") == code[0])
    assert (rows.height, rows["icustay_id"].n_unique()) == (65, 60)
    expected = clipped(events, stays, code, cohort.patients)
    found = cohort.treatments.filter(pl.col("treatment") == "ventilation")
    total, stretches = covered(found.select("patient", "start", "stop").rows())
    by_hand, stretches_by_hand = covered(expected.select("patient", "start", "stop").rows())
    assert total == pytest.approx(by_hand, abs=len(found) * SECOND / 1e3)
    assert stretches == stretches_by_hand
    assert set(found["rate"]) == {1.0}


def test_norepinephrine_stays_on_across_every_titration(cohort, events, stays):
    """859 times a new rate begins at the instant at which the old one ends: one by one, no gap, and the new rate."""
    own = events.filter(pl.col("code").str.contains("^INFUSION_(START|END)//221906$"))
    starts, ends = (own.filter(pl.col("code").str.contains(kind)) for kind in ("START", "END"))
    at_once = starts.join(ends.select("icustay_id", "time", old="order_id"), on=["icustay_id", "time"])
    at_once = at_once.filter(pl.col("order_id") != pl.col("old"))
    assert at_once.height == 859
    inside = at_once.join(stays, on="icustay_id").filter(
        (pl.col("time") > pl.col("begin")) & (pl.col("time") < pl.col("end"))
    )
    assert inside.height >= 850
    given = cohort.treatments.filter(pl.col("treatment") == "norepinephrine")
    of_patient = {name: rows for (name,), rows in given.group_by("patient")}
    alone = 0
    for patient, hour, rate in inside.select("patient", hours("time", "begin"), "numeric_value").rows():
        rows = of_patient[patient]
        just_before = rows.filter((pl.col("start") < hour - SECOND / 2) & (pl.col("stop") >= hour - SECOND / 2))
        just_after = rows.filter((pl.col("start") <= hour + SECOND / 2) & (pl.col("stop") > hour + SECOND / 2))
        assert (just_before.height, just_after.height) == (1, 1), (patient, hour)
        assert just_after["rate"].item() > rate - 1e-6  # more where another order runs beside it
        alone += just_after["rate"].item() == pytest.approx(rate)
    assert alone > 0.95 * inside.height


@pytest.fixture(scope="module")
def on_the_page(tmp_path_factory):
    """By the TOML file that the how-to page shows."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "meds.md"
    (spec,) = re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    path = tmp_path_factory.mktemp("page") / "spec.toml"
    path.write_text(spec)
    return read(path)


def test_the_spec_on_the_page_takes_what_it_says(on_the_page, events, stays):
    """Doses by the number of their stay, laboratory values by their time, of ten days at most."""
    first_days = stays.with_columns(
        end=pl.min_horizontal("end", pl.col("begin") + pl.duration(days=10)),
        subject_id=pl.col("patient").str.split("/").list.get(0).cast(pl.Int64),
    )

    def inside(code, by):
        rows = events.filter(pl.col("code") == code).select(by, "time", value=pl.col("numeric_value").cast(pl.Float64))
        rows = rows.join(first_days, on=by).filter(pl.col("time").is_between(pl.col("begin"), pl.col("end")))
        return rows.select("patient", "value", hour=hours("time", "begin"))

    doses = inside("INFUSION_END//225166", "icustay_id").sort("patient", "hour", "value")
    given = on_the_page.treatments.filter(pl.col("treatment") == "potassium").sort("patient", "start", "dose")
    assert given["patient"].to_list() == doses["patient"].to_list()
    assert len(given) == 380 - 33  # after the ten days, or outside of stays
    np.testing.assert_allclose(given["start"], doses["hour"], atol=SECOND / 1e3)
    np.testing.assert_allclose(given["dose"], doses["value"], rtol=1e-6)

    lactate = inside("LAB//50813//mmol/L", "subject_id")
    left_out = [count(on_the_page, code, "lactate") for code in ("meds-outside-stay", "meds-after-longest")]
    assert lactate.height == 758 - sum(left_out)
    of_patients = lactate.filter(pl.col("patient").is_in(on_the_page.patients.implode()))
    found = on_the_page.observations.drop_nulls("lactate")
    assert set(found["patient"]) == set(of_patients["patient"])
    assert found.height == of_patients.height
    assert found["lactate"].sum() == pytest.approx(of_patients["value"].sum())
    assert on_the_page.follow_up_end.max() == 240.0
