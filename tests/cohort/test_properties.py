"""Whatever a table holds: read, save, load and describe change nothing."""

import tempfile
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import counterpath as cp

FLOATS = st.none() | st.floats(-1e150, 1e150)  # the square of a larger number, and so its std, is no float64
INTEGERS = st.none() | st.integers(-(2**53), 2**53)
# Everything but lone surrogates, which no UTF-8 file can hold.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5).filter(str.strip)  # blank text is a gap
START = datetime(2031, 1, 1)


@st.composite
def tables(draw):
    """Ragged patients with gaps, categories, doses and intervals; times are whole numbers of quarters of a day."""
    ids = draw(
        st.lists(st.integers(-(2**60), 2**60), min_size=1, max_size=4, unique=True)
        | st.lists(TEXT.filter(bool), min_size=1, max_size=4, unique=True)
    )
    quarters = st.integers(0, 4000)
    rows, given_rows = [], []
    for patient in ids:
        for time in sorted(draw(st.lists(quarters, min_size=1, max_size=5, unique=True))):
            values = [draw(s) for s in (FLOATS, FLOATS, INTEGERS, st.none() | st.booleans(), st.none() | TEXT)]
            rows.append((patient, time / 4, *values))
        bounds = sorted(draw(st.lists(quarters, max_size=5, unique=True)))
        for start, stop in zip(bounds[::2], [*bounds[1::2], None], strict=False):
            rate = draw(st.floats(1e-6, 1e6))
            given_rows.append((patient, "drip", start / 4, None if stop is None else stop / 4, None, rate))
        for time in draw(st.lists(quarters, max_size=3)):
            given_rows.append(
                (patient, draw(st.sampled_from(["pill", "Ω-3"])), time / 4, None, draw(st.floats(1e-6, 1e6)), None)
            )
    kind = pl.Int64 if isinstance(ids[0], int) else pl.String
    observations = pl.DataFrame(
        rows,
        schema={
            "patient": kind,
            "time": pl.Float64,
            "y": pl.Float64,
            "x": pl.Float64,
            "n": pl.Int64,
            "flag": pl.Boolean,
            "mood": pl.String,
        },
        orient="row",
    )
    treatments = pl.DataFrame(
        given_rows,
        schema={
            "patient": kind,
            "treatment": pl.String,
            "start": pl.Float64,
            "stop": pl.Float64,
            "dose": pl.Float64,
            "rate": pl.Float64,
        },
        orient="row",
    )
    static = pl.DataFrame(
        {
            "patient": pl.Series(ids, dtype=kind),
            "age": pl.Series([draw(FLOATS) for _ in ids], dtype=pl.Float64),
            "site": pl.Series([draw(st.none() | TEXT) for _ in ids], dtype=pl.String),
            "end": pl.Series([draw(st.none() | st.just(1000.0)) for _ in ids], dtype=pl.Float64),
        }
    )
    # Somebody without any value would be left out, with a warning that has its own test.
    observations = observations.with_columns(pl.when(pl.col("time") >= 0).then(pl.col("x").fill_null(0.5)).alias("x"))
    if draw(st.booleans()):
        observations = observations.with_columns(dated("time"))
        treatments = treatments.with_columns(dated("start"), dated("stop"))
        static = static.with_columns(dated("end"))
    return observations, treatments, static


def dated(column):
    return (pl.lit(START) + pl.duration(microseconds=(pl.col(column) * 86_400_000_000).cast(pl.Int64))).alias(column)


def read(frames, **options):
    options = {"categorical": ["mood", "site"], "follow_up_end": "end", "randomised": True} | options
    return cp.Cohort.from_tables(*frames, outcome="y", time_unit="day", **options)


@settings(max_examples=60)  # tables are built and read for each
@given(tables())
def test_read_save_load_describe_change_nothing(frames):
    cohort = read(frames)
    with tempfile.TemporaryDirectory() as folder:
        cohort.save(Path(folder) / "c")
        loaded = cp.read_cohort(Path(folder) / "c")
    assert loaded.equals(cohort)
    assert loaded.describe().equals(cohort.describe())
    assert loaded.observations.equals(cohort.observations)
    assert loaded.treatments.equals(cohort.treatments)
    assert loaded.static.equals(cohort.static)


@settings(max_examples=60)  # tables are built and read for each
@given(tables())
def test_what_comes_back_is_what_was_given(frames):
    cohort = read(frames)
    back, given_table = cohort.observations, frames[0]
    assert back.drop("time").equals(given_table.drop("time"))
    first = cohort.static.select("patient", "time_origin")
    times = given_table.join(first, on="patient", how="left", maintain_order="left")
    since = times["time"] - times["time_origin"]
    if since.dtype != pl.Float64:
        since = since.dt.total_microseconds() / 86_400_000_000
    assert back["time"].to_list() == since.to_list()
    assert cohort.events.rows == frames[1].height


@settings(max_examples=40)  # tables are built and read for each
@given(tables(), st.integers(-(10**6), 10**6))
def test_another_calendar_changes_nothing_but_origins(frames, quarters):
    """Adding a constant to all of a patient's times; quarters of a day are exact in float64."""
    patient = frames[0]["patient"][0]

    def moved(frame, *columns):
        def later(column):
            is_date = isinstance(frame[column].dtype, pl.Datetime)
            shift = pl.lit(timedelta(hours=6 * quarters)) if is_date else pl.lit(quarters / 4)
            return pl.when(pl.col("patient") == patient).then(pl.col(column) + shift).otherwise(column).alias(column)

        return frame.with_columns(later(column) for column in columns)

    here = read(frames)
    there = read((moved(frames[0], "time"), moved(frames[1], "start", "stop"), moved(frames[2], "end")))
    assert there.records.equals(here.records)
    assert there.events.equals(here.events)
    assert there.schema == here.schema
    np.testing.assert_array_equal(there.follow_up_end, here.follow_up_end)
    shift = (there.origins - here.origins).to_list()
    first = timedelta(hours=6 * quarters) if isinstance(shift[0], timedelta) else quarters / 4
    assert shift == [first] + [0 * first] * (len(shift) - 1)


@settings(max_examples=40)  # tables are built and read for each
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(frames, random):
    def shuffled(frame):
        order = list(range(frame.height))
        random.shuffle(order)
        return frame[order]

    cohort = read(frames)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Times run backwards", cp.CohortWarning)
        other = read([shuffled(frame) for frame in frames])[cohort.patients.to_list()]
    assert other.records.equals(cohort.records)
    assert other.events.equals(cohort.events)
    assert other.origins.equals(cohort.origins)
    assert other.schema == cohort.schema
    np.testing.assert_array_equal(other.static_values, cohort.static_values)
    np.testing.assert_array_equal(other.follow_up_end, cohort.follow_up_end)
    assert {repair.code for repair in other.repairs} <= {"unsorted_times"}


@settings(max_examples=40)  # tables are built and read for each
@given(tables(), st.sampled_from(["pandas", "pyarrow"]))
def test_the_kind_of_frame_does_not_matter(frames, kind):
    convert = {"pandas": lambda f: f.to_pandas(), "pyarrow": lambda f: f.to_arrow()}[kind]
    other, cohort = read([convert(frame) for frame in frames]), read(frames)
    assert other.records.equals(cohort.records)
    assert other.events.equals(cohort.events)
    assert other.patients.equals(cohort.patients)
    assert other.frames == kind
