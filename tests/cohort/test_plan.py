import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counterpath as cp
from counterpath.cohort.plan import KeptRunning, PlannedDose, PlannedInfusion


@pytest.fixture
def cohort(read):
    """Patient a has a drip that runs at day 2, patient b has not; pills of 1 to 5."""
    return read(
        {"patient": ["a", "a", "b", "b"], "time": [0.0, 4.0, 0.0, 4.0], "y": [1.0, 2.0, 3.0, 4.0]},
        {
            "patient": ["a", "a", "b", "b"],
            "treatment": ["drip", "pill", "pill", "drip"],
            "start": [1.0, 3.0, 1.0, 0.0],
            "stop": [4.0, None, None, 1.0],
            "dose": [None, 5.0, 1.0, None],
            "rate": [0.5, None, None, 0.25],
        },
    )


@pytest.fixture
def history(cohort):
    return cohort.until(2.0)


def rows(events, history):
    """(patient, treatment, start, stop, amount) of each event, with None for a dose's stop."""
    names = [t.name for t in history.schema.treatments]
    stops = [None if np.isnan(stop) else stop for stop in events.stop]
    who = history.patients.gather(events.patient_of_row).to_list()
    what = [names[code] for code in events.treatment]
    return [*zip(who, what, events.start.tolist(), stops, events.amount.tolist(), strict=True)]


def test_none_resolves_to_nothing_even_where_a_drip_runs(history):
    assert np.isinf(history.events.stop).any()
    events = cp.Plan.none().resolve(history)
    assert events.rows == 0
    assert events.patients == 2


def test_a_dose_now_is_the_usual_one_for_everybody(history):
    plan = cp.Plan.dose("pill").resolve(history)
    assert rows(plan, history) == [("a", "pill", 0.0, None, 1.0), ("b", "pill", 0.0, None, 1.0)]


def test_repeat_counts_from_its_start(history):
    plan = cp.Plan.repeat("pill", every=2.0, times=3, start=0.5, dose=2.0).resolve(history[["a"]])
    assert rows(plan, history) == [("a", "pill", t, None, 2.0) for t in (0.5, 2.5, 4.5)]


def test_an_infusion_with_and_without_a_stop(history):
    plan = cp.Plan.infusion("drip", start=1.0, stop=3.0, rate=0.5) + cp.Plan.infusion("drip", start=3.0)
    assert rows(plan.resolve(history[["b"]]), history[["b"]]) == [
        ("b", "drip", 1.0, 3.0, 0.5),
        ("b", "drip", 3.0, np.inf, 0.25),
    ]


def test_continued_keeps_present_rates_per_patient(history):
    assert rows(cp.Plan.continued().resolve(history), history) == [("a", "drip", 0.0, np.inf, 0.5)]


def test_observed_is_what_the_table_holds_after_the_cut(cohort, history):
    plan = cp.Plan.observed(cohort).resolve(history)
    assert rows(plan, history) == [("a", "drip", 0.0, 2.0, 0.5), ("a", "pill", 1.0, None, 5.0)]


def test_plans_add_up(history):
    plan = cp.Plan.continued() + cp.Plan.dose("pill", at=1.0, dose=3.0)
    assert rows(plan.resolve(history[["a"]]), history[["a"]]) == [
        ("a", "drip", 0.0, np.inf, 0.5),
        ("a", "pill", 1.0, None, 3.0),
    ]


def test_a_plan_of_their_own_for_each_patient(history):
    plan = cp.Plan.per_patient({"b": cp.Plan.dose("pill", dose=2.0), "a": cp.Plan.continued()})
    assert rows(plan.resolve(history), history) == [("a", "drip", 0.0, np.inf, 0.5), ("b", "pill", 0.0, None, 2.0)]


def test_somebody_may_be_planned_to_receive_nothing(history):
    """Said per patient, it is meant, and nobody is warned."""
    plan = cp.Plan.per_patient({"a": cp.Plan.dose("pill", dose=2.0), "b": cp.Plan.none()})
    assert rows(plan.resolve(history), history) == [("a", "pill", 0.0, None, 2.0)]
    assert cp.Plan.from_json(plan.to_json()) == plan


def test_whoever_has_no_line_is_named(history):
    with pytest.warns(cp.PlanWarning, match=r"no line for 1 patient \(patient b\), who is planned to receive nothing"):
        cp.Plan.per_patient({"a": cp.Plan.dose("pill")}).resolve(history)


def test_numpy_ids_are_plain_ids(read):
    cohort = read({"patient": [7], "time": [0.0], "y": [1.0]}, {"patient": [7], "time": [0.0], "treatment": ["pill"]})
    plan = cp.Plan.per_patient({np.int64(7): cp.Plan.dose("pill")})
    assert plan.resolve(cohort).rows == 1
    assert json.loads(plan.to_json())["doses"] == [{"treatment": "pill", "time": 0.0, "patient": 7}]


def test_times_are_converted_to_the_historys_unit(history):
    plan = cp.Plan.repeat("pill", every=12.0, times=2, start=6.0, time_unit="hour").resolve(history[["a"]])
    assert plan.start.tolist() == [0.25, 0.75]
    infusion = cp.Plan.infusion("drip", start=1.0, stop=2.0, rate=0.5, time_unit="week").resolve(history[["a"]])
    assert (infusion.start[0], infusion.stop[0], infusion.amount[0]) == (7.0, 14.0, 0.5)


def test_plans_of_two_units_add_up():
    plan = cp.Plan.dose("pill", at=1.0, time_unit="day") + cp.Plan.dose("pill", at=12.0, time_unit="hour")
    assert plan.time_unit == "day"
    assert [dose.time for dose in plan.doses] == [1.0, 0.5]


def test_a_unit_of_a_plan_without_times_is_not_lent_to_the_other():
    timeless = cp.Plan.from_json('{"keeps_running": [{}], "time_unit": "hour"}')
    assert (timeless + cp.Plan.dose("pill", at=2.0)).time_unit is None
    assert (cp.Plan.dose("pill", at=2.0) + timeless).time_unit is None
    assert (cp.Plan.none() + cp.Plan.dose("pill", time_unit="hour")).time_unit == "hour"


# --- refusals


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cp.Plan.dose("pill", at=-1.0), "at=-1.0 is no time from now on"),
        (lambda: cp.Plan.dose("pill", at=float("nan")), "at=nan is no time"),
        (lambda: cp.Plan.repeat("pill", every=0.0, times=2), "every=0.0 is not a positive number"),
        (lambda: cp.Plan.repeat("pill", every=1.0, times=0), "Plan.none"),
        (lambda: cp.Plan.dose("pill", dose=-2.0), "dose=-2.0 is not a positive number"),
        (lambda: cp.Plan.infusion("drip", start=-1.0), "start=-1.0"),
        (lambda: cp.Plan.infusion("drip", start=2.0, stop=2.0), "stops at 2, not after its start at 2"),
        (lambda: cp.Plan.infusion("drip", rate=0.0), "rate=0.0 is not a positive number"),
        (lambda: cp.Plan.from_json("{"), "not JSON"),
        (lambda: cp.Plan.from_json('{"doses": [{"treatment": "pill", "time": -1}]}'), r"doses.0.time=-1"),
        (lambda: cp.Plan.from_json('{"dozes": []}'), "dozes"),
        (lambda: cp.Plan.from_json('{"infusions": [{"treatment": "d", "start": 3, "stop": 2}]}'), "stops at 2"),
        (lambda: cp.Plan.from_table(pl.DataFrame({"treatment": ["a"], "tim": [0.0]})), "Did you mean 'tim'"),
        (lambda: cp.Plan.from_table(pl.DataFrame({"drug": ["a"], "time": [0.0]})), "no column 'treatment'"),
        (
            lambda: cp.Plan.from_table(pl.DataFrame({"treatment": ["a"], "time": [0.0], "dosis": [1]})),
            "'dosis'. Did you mean 'dose'",
        ),
        (lambda: cp.Plan.from_table(pl.DataFrame({"treatment": ["a", "a"], "time": [0.0, -1.0]})), "Row 2 .*time=-1.0"),
        (
            lambda: cp.Plan.from_table(pl.DataFrame({"treatment": ["a"], "start": [3.0], "stop": [2.0]})),
            "Row 1 .*stops at 2",
        ),
        (
            lambda: cp.Plan.from_table(pl.DataFrame({"treatment": ["a"], "time": [0.0], "dose": [1.0], "rate": [1.0]})),
            "Row 1 .*An infusion takes a rate",
        ),
        (
            lambda: cp.Plan.from_table(
                pl.DataFrame({"treatment": ["a", "a"], "time": [0.0, 1.0], "time_unit": ["day", "hour"]})
            ),
            "mixes time units",
        ),
        (
            lambda: cp.Plan.from_table(pl.DataFrame({"treatment": ["a"], "time": [0.0], "time_unit": ["days"]})),
            "time_unit='days'",
        ),
        (lambda: cp.Plan.dose("pill", at=1.0) + cp.Plan.dose("pill", time_unit="day"), "Give both, or none"),
        (lambda: cp.Plan.continued().to_table(), "resolve it first"),
        (lambda: cp.Plan.infusion("drip").to_table(), "'drip' would be a dose. Give its rate"),
        (
            lambda: cp.Plan.per_patient({"a": cp.Plan.per_patient({"b": cp.Plan.dose("pill")})}),
            "'a' names patients itself",
        ),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(make, message):
    with pytest.raises(cp.PlanError, match=message):
        make()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (cp.Plan.dose("pil"), "'pil', which is no treatment of this cohort. Did you mean 'pill'"),
        (cp.Plan.per_patient({"z": cp.Plan.dose("pill")}), "patient z, not in this cohort of 2"),
        (cp.Plan.per_patient({"z": cp.Plan.continued()}), "patient z, not in this cohort of 2"),
        (cp.Plan.per_patient({7: cp.Plan.dose("pill")}), "patient 7, which is a number; ids of this cohort are text"),
        (cp.Plan.per_patient({7: cp.Plan.continued()}), "patient 7, which is a number"),
        (cp.Plan.dose("drip"), "never given as single doses"),
        (cp.Plan.infusion("drip", stop=3.0) + cp.Plan.infusion("drip", start=2.0), "two infusions of 'drip' at once"),
        (cp.Plan.continued() + cp.Plan.infusion("drip"), "patient a two infusions of 'drip' at once"),
    ],
)
def test_a_plan_that_does_not_fit_the_history_is_refused(history, plan, message):
    with pytest.raises(cp.PlanError, match=message):
        plan.resolve(history)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (cp.Plan.dose("pill", dose=50.0), "A dose of 50 of 'pill' was never seen: this cohort received 1 to 5"),
        (cp.Plan.infusion("drip", rate=0.01), "A rate of 0.01 of 'drip' was never seen"),
    ],
)
def test_an_amount_that_was_never_seen_is_a_warning(history, plan, message):
    with pytest.warns(cp.UnseenDoseWarning, match=message):
        events = plan.resolve(history)
    assert events.rows == 2


def test_a_dose_within_the_seen_range_is_no_warning(history):
    assert cp.Plan.dose("pill", dose=2.5).resolve(history).amount.tolist() == [2.5, 2.5]


def test_observed_has_no_form_of_its_own(cohort):
    observed = cp.Plan.observed(cohort)
    for write in (observed.to_json, observed.to_table):
        with pytest.raises(cp.PlanError):
            write()
    with pytest.raises(cp.PlanError, match="Two observed plans"):
        observed + observed
    with pytest.raises(cp.PlanError, match="already per patient"):
        cp.Plan.per_patient({"a": observed})


# --- forms

TABLE = {
    "patient": ["a", "a", None],
    "treatment": ["pill", "drip", "pill"],
    "start": [0.0, 1.0, 2.0],
    "stop": [None, 3.0, None],
    "dose": [2.0, None, None],
    "rate": [None, 0.5, None],
}
PLAN = cp.Plan(
    doses=(PlannedDose(treatment="pill", time=0.0, dose=2.0, patient="a"), PlannedDose(treatment="pill", time=2.0)),
    infusions=(PlannedInfusion(treatment="drip", start=1.0, stop=3.0, rate=0.5, patient="a"),),
)


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, pa.table], ids=["polars", "pandas", "pyarrow"])
def test_a_plan_from_a_frame(make):
    assert cp.Plan.from_table(make(TABLE)) == PLAN


def test_a_plan_from_files(tmp_path):
    pl.DataFrame(TABLE).write_csv(tmp_path / "plan.csv")
    pl.DataFrame(TABLE).write_parquet(tmp_path / "plan.parquet")
    (tmp_path / "plan.json").write_text(PLAN.to_json(), encoding="utf-8")
    for name in ("plan.csv", "plan.parquet", "plan.json"):
        assert cp.Plan.from_table(tmp_path / name) == PLAN
        assert cp.Plan.from_table(str(tmp_path / name)) == PLAN


@pytest.mark.parametrize(("text", "patient"), [("007", "007"), ("7", 7), ("W01", "W01")])
def test_ids_of_a_csv_plan_are_read_as_those_of_a_cohort(tmp_path, text, patient):
    (tmp_path / "plan.csv").write_text(f"patient,treatment,time\n{text},pill,0\n")
    assert cp.Plan.from_table(tmp_path / "plan.csv").doses[0].patient == patient


def test_a_table_that_a_plan_wrote_is_read_where_patients_have_another_column(tmp_path):
    """Ids of a file are read as those of a cohort there too."""
    plan = cp.Plan(doses=(PlannedDose(treatment="pill", time=0.0, dose=2.0, patient=7),))
    plan.to_table().write_csv(tmp_path / "plan.csv")
    assert cp.Plan.from_table(tmp_path / "plan.csv", patient="stay") == plan
    assert cp.Plan.from_table(plan.to_table(), patient="stay") == plan


def test_a_table_in_a_unit():
    table = pl.DataFrame({"treatment": ["pill"], "time": [12.0]})
    assert cp.Plan.from_table(table, time_unit="hour") == cp.Plan.dose("pill", at=12.0, time_unit="hour")
    table = table.with_columns(time_unit=pl.lit("hour"))
    assert cp.Plan.from_table(table) == cp.Plan.dose("pill", at=12.0, time_unit="hour")


@pytest.mark.parametrize(("kind", "frame"), [("polars", pl.DataFrame), ("pandas", pd.DataFrame), ("pyarrow", pa.Table)])
def test_a_plan_as_the_users_kind_of_frame(kind, frame):
    table = PLAN.to_table(kind)
    assert isinstance(table, frame)
    assert cp.Plan.from_table(table) == PLAN


PRINTABLE = st.characters(exclude_categories=["C", "Z"], include_characters=" ")
NAMES = st.text(PRINTABLE, min_size=1, max_size=8)
TIMES = st.floats(0, 1e6, allow_subnormal=False)
SOME = st.floats(1e-9, 1e9)
AMOUNTS = st.none() | SOME


@st.composite
def plans(draw):
    ids = draw(st.sampled_from([st.none(), st.none() | st.integers(-(2**40), 2**40), st.none() | NAMES]))
    doses = draw(st.lists(st.builds(PlannedDose, treatment=NAMES, time=TIMES, dose=AMOUNTS, patient=ids), max_size=3))
    infusions = []
    for _ in range(draw(st.integers(0, 3))):
        start, stop = draw(TIMES), draw(st.none() | TIMES)
        if stop is not None and stop <= start:
            start, stop = stop, start + 1.0
        # in a table, a row without stop and rate is a dose
        rate = draw(AMOUNTS if stop is not None else SOME)
        infusions.append(PlannedInfusion(treatment=draw(NAMES), start=start, stop=stop, rate=rate, patient=draw(ids)))
    unit = draw(st.sampled_from([None, "second", "day", "year"])) if doses or infusions else None
    return cp.Plan(doses=tuple(doses), infusions=tuple(infusions), time_unit=unit)


@given(plans(), st.lists(st.sampled_from([None, "a", 1]), max_size=2), st.sampled_from([(), ("drip",)]))
def test_json_is_the_plan(plan, patients, without):
    plan = plan.model_copy(
        update={"keeps_running": tuple(KeptRunning(patient=patient, without=without) for patient in patients)}
    )
    assert cp.Plan.from_json(plan.to_json()) == plan


@given(plans(), st.sampled_from(["polars", "pandas", "pyarrow"]))
def test_a_table_is_the_plan(plan, kind):
    assert cp.Plan.from_table(plan.to_table(kind)) == plan


@given(plans(), plans())
def test_a_sum_survives_both_forms(one, other):
    if one.time_unit != other.time_unit and one.doses + one.infusions and other.doses + other.infusions:
        one = one.model_copy(update={"time_unit": None})
        other = other.model_copy(update={"time_unit": None})
    total = one + other
    assert cp.Plan.from_json(total.to_json()) == total
    assert len(total.doses) == len(one.doses) + len(other.doses)


def test_a_kind_of_treatment_that_was_never_given_is_refused_whatever_its_amount(history):
    """No channel of a model could carry it: 1 and 10,000 would look the same."""
    with pytest.raises(cp.PlanError, match="'drip' was never given as single doses"):
        cp.Plan.dose("drip", dose=1.0).resolve(history)


def test_what_runs_can_be_replaced(history):
    plan = cp.Plan.continued(without=["drip"]) + cp.Plan.infusion("drip", 0.0, 2.0, rate=0.5)
    assert ("a", "drip", 0.0, 2.0, 0.5) in rows(plan.resolve(history), history)
    with pytest.raises(cp.PlanError, match=r"Plan\.continued\(without=\['drip'\]\)"):
        (cp.Plan.continued() + cp.Plan.infusion("drip", 0.0, 2.0, rate=0.5)).resolve(history)
    with pytest.raises(cp.PlanError, match="no treatment of this cohort"):
        cp.Plan.continued(without=["dripp"]).resolve(history)


def test_what_was_observed_counts_from_the_same_time_zero():
    frame = pl.DataFrame({"patient": [1] * 4, "time": [10.0, 12.0, 14.0, 20.0], "y": [1.0, 2.0, 3.0, 4.0]})
    doses = pl.DataFrame({"patient": [1, 1], "treatment": ["pill"] * 2, "time": [13.0, 15.0], "dose": [1.0, 1.0]})
    full = cp.Cohort.from_tables(frame, doses, outcome="y", time_unit="day")
    late = cp.Cohort.from_tables(frame[1:], doses, outcome="y", time_unit="day")
    with pytest.raises(cp.PlanError, match="another time zero"):
        cp.Plan.observed(full).resolve(late.until(2.5))
    assert cp.Plan.observed(late).resolve(late.until(2.5)).start.tolist() == [0.5]


def test_a_stop_that_is_on_record_is_not_undone():
    frame = pl.DataFrame({"patient": [1, 1], "time": [0.0, 8.0], "y": [1.0, 2.0]})
    drip = pl.DataFrame({"patient": [1], "treatment": ["drip"], "start": [2.0], "stop": [10.0], "rate": [0.5]})
    cohort = cp.Cohort.from_tables(frame, drip, outcome="y", time_unit="day")
    assert cp.Plan.continued().resolve(cohort).rows == 0
    assert cp.Plan.continued().resolve(cohort.until(10.0)).rows == 1  # there the stop was not decided yet


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cp.Plan.infusion("drip", 0.0, float("inf"), 0.5), "stop=inf"),
        (lambda: cp.Plan.repeat(3, every=1.0, times=2), "treatment"),
        (lambda: cp.Plan.dose("pill", "now"), "at='now'"),
        (lambda: cp.Plan.dose("pill", dose="500"), "dose='500'"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_in_plain_words(make, message, checker_off):
    with pytest.raises(cp.PlanError, match=message):
        make()


def test_an_empty_file_is_no_plan(tmp_path):
    (tmp_path / "plan.csv").write_text("")
    with pytest.raises(cp.PlanError, match="cannot be read as a plan"):
        cp.Plan.from_table(tmp_path / "plan.csv")


def test_who_receives_nothing_has_no_row_in_a_table():
    plan = cp.Plan.per_patient({"a": cp.Plan.dose("pill"), "b": cp.Plan.none()})
    with pytest.raises(cp.PlanError, match="Write JSON"):
        plan.to_table()


def test_a_plan_for_each_of_many_patients_grows_linearly():
    """Not timed: the content is collected once, so that its size is the only thing that grows."""
    plan = cp.Plan.per_patient({i: cp.Plan.repeat("pill", every=1.0, times=3) for i in range(2_000)})
    assert len(plan.doses) == 6_000
    assert plan.doses[-1].patient == 1_999
