"""Values of a variable come in one unit, through all files, or the import stops and says what to write."""

from functools import partial

import numpy as np
import polars as pl
import pytest
from small_meds import SPEC, person, row, stay, write_meds

import counterpath as cp

ICU_COLUMNS = {"stay": "icustay_id", "order": "order_id"}


@pytest.fixture
def write(tmp_path):
    return partial(write_meds, tmp_path / "meds")


def read(folder, spec=SPEC, **options):
    return cp.read_meds(folder, spec, progress=False, **options)


def rates_in(unit, subject=1):
    """The made-up stay, with its pulse in this unit."""
    rows = person(subject) + stay(subject, subject + 6)
    return [(*own[:4], unit, *own[5:]) if own[2] == "LAB//rate" else own for own in rows]


def pulse(**own):
    return SPEC | {"covariates": {"rate": {"codes": "LAB//rate", **own}}}


def pulses(cohort):
    return cohort.observations["rate"].drop_nulls().to_list()


def of_drug(**own):
    return SPEC | {"treatments": {"drug": SPEC["treatments"]["drug"] | own, "pill": {"codes": "PILL"}}}


@pytest.mark.parametrize("spec", [pulse(), pulse(unit="bpm")], ids=["no unit in the spec", "a unit in the spec"])
def test_another_unit_in_another_file_is_an_error(write, spec):
    folder = write(rates_in("bpm", 1), rates_in("Hz", 2), rates_in("bpm", 3))
    with pytest.raises(cp.CohortError, match=r"rate has values in bpm \(1 row\) and Hz \(1 row\).*units = \{ \"Hz\" ="):
        read(folder, spec)


@pytest.mark.parametrize("spec", [pulse(), pulse(unit="bpm")], ids=["no unit in the spec", "a unit in the spec"])
def test_another_unit_in_the_same_file_is_an_error(write, spec):
    with pytest.raises(cp.CohortError, match="the spec does not say how Hz becomes bpm"):
        read(write(rates_in("bpm", 1) + rates_in("bpm", 2) + rates_in("Hz", 3)), spec)


def test_a_factor_holds_in_every_file(write):
    folder = write(rates_in("bpm", 1), rates_in("Hz", 2), rates_in(None, 3))
    assert pulses(read(folder, pulse(units={"Hz": 60}))) == [60.0, 3_600.0, 60.0]


def test_units_do_not_matter_where_the_data_has_no_such_column(write):
    assert pulses(read(write(person() + stay(), drop=["unit"]), pulse(unit="bpm"))) == [60.0]


def test_a_unit_is_left_out_and_counted(write):
    folder = write(rates_in("bpm", 1), rates_in("Hz", 2))
    with pytest.warns(
        cp.CohortWarning, match=r"1 record of rate is in a unit that the spec leaves out\. \(patient 2/8"
    ):
        cohort = read(folder, pulse(units={"Hz": False}))
    assert pulses(cohort) == [60.0]
    assert [(repair.code, repair.count) for repair in cohort.repairs] == [("meds-other-unit", 1)]


def test_an_interval_in_a_unit_that_is_left_out(write):
    rows = person() + stay()
    rows[6] = row(1, 3.0, "DRUG//ON", 4.0, unit="mcg/h", stay=7, order=72)
    with pytest.warns(cp.CohortWarning, match="1 record of drug is in a unit that the spec leaves out"):
        given = read(write(rows), of_drug(units={"mcg/h": False})).treatments.filter(pl.col("treatment") == "drug")
    assert given.select("start", "stop", "rate").rows() == [(1.0, 3.0, 2.0)]


def test_where_all_is_left_out_the_error_says_why(write):
    spec = SPEC | {"outcome": {"pressure": {"codes": ["LAB//art", "LAB//cuff"], "units": {"kPa": False}}}}
    rows = [(*own[:4], "kPa", *own[5:]) if own[2] in ("LAB//art", "LAB//cuff") else own for own in stay()]
    with pytest.raises(
        cp.CohortError, match=r"No usable record of pressure .*2 records of pressure are in a unit that the spec leaves"
    ):
        read(write(rows), spec)


@pytest.mark.parametrize("factor", ["true", "0", "-1", '"half"'])
def test_what_is_no_factor_is_refused(write, tmp_path, factor):
    path = tmp_path / "spec.toml"
    path.write_text(f'time_unit = "hour"\n[outcome.y]\ncodes = "A"\nunits = {{ "Hz" = {factor} }}\n')
    with pytest.raises(cp.CohortError, match=r"outcome.*units.*Hz"):
        read(write(stay()), path)


def infusions(subject):
    """Of four drugs, each in a unit that MIMIC-IV has for it beside the usual."""
    units = {221906: "mg/kg/min", 221749: "mcg/min", 222315: "units/min", 221289: "mcg/kg/min"}
    at = {"stay": subject}
    rows = [row(subject, 0.0, "ICU_ADMISSION//MICU", **at), row(subject, 0.5, "LAB//220051//mmHg", 60.0, **at)]
    rows += [row(subject, 1.0, f"INFUSION_START//{d}", 0.5, unit=u, **at, order=d) for d, u in units.items()]
    rows += [row(subject, 2.0, f"INFUSION_END//{d}", 9.0, unit="mg", **at, order=d) for d in units]
    return [*rows, row(subject, 9.0, "ICU_DISCHARGE//MICU", **at)]


def test_the_ready_spec_knows_the_units_of_mimic_iv(write):
    with pytest.warns(cp.CohortWarning) as said:
        cohort = read(write(infusions(1), names=ICU_COLUMNS), "icu-haemodynamics")
    assert any(
        "1 record of phenylephrine is in a unit that the spec leaves out" in str(warning.message) for warning in said
    )
    rates = dict(cohort.treatments.select("treatment", "rate").iter_rows())
    assert rates.keys() == {"norepinephrine", "vasopressin", "epinephrine"}
    np.testing.assert_allclose([rates["norepinephrine"], rates["vasopressin"], rates["epinephrine"]], [500, 30, 0.5])
