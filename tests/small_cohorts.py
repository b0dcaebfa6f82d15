"""Random small cohorts for property tests: ragged, with gaps, ties, doses at visits and infusions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
from hypothesis import strategies as st

from counterpath.cohort import Cohort

QUARTERS = st.integers(0, 80).map(lambda n: n / 4)  # exact in binary, so that shifts and cuts are exact too
NUMBERS = st.one_of(st.none(), st.floats(-50, 50, width=32))


@st.composite
def tables(draw, *, gaps: bool = True) -> tuple[list, list]:
    """One to four patients, with an outcome, two covariates, doses of one drug and infusions of another."""
    observations, treatments = [], []
    for patient in range(draw(st.integers(1, 4))):
        times = sorted(draw(st.lists(QUARTERS, min_size=1, max_size=8, unique=True)))
        for i, time in enumerate(times):
            full = not gaps or i == 0  # a patient has at least one measurement of everything
            number = st.floats(-50, 50, width=32) if full else NUMBERS
            level = st.sampled_from(["low", "high"]) if full else st.sampled_from(["low", "high", None])
            observations.append((patient, time, draw(number), draw(number), draw(level)))
        for time in draw(st.lists(st.one_of(QUARTERS, st.sampled_from(times)), max_size=4)):
            treatments.append((patient, "pill", time, None, draw(st.sampled_from([50.0, 100.0])), None))
        edges = sorted(draw(st.lists(QUARTERS, max_size=6, unique=True)))
        for start, stop in zip(edges[::2], edges[1::2], strict=False):
            treatments.append((patient, "drip", start, stop, None, draw(st.sampled_from([0.5, 2.0]))))
    # Everybody has everything once, so that every channel exists.
    observations.append((99, 0.0, 1.0, 2.0, "low"))
    observations.append((99, 30.0, 3.0, 4.0, "high"))
    treatments += [(99, "pill", 1.0, None, 50.0, None), (99, "drip", 2.0, 3.0, None, 1.0)]
    return observations, treatments


def cohort_of(tables: tuple[list, list]) -> Cohort:
    """The cohort of such tables."""
    observations, treatments = tables
    return Cohort.from_tables(
        pl.DataFrame(observations, schema=["patient", "time", "y", "x", "level"], orient="row"),
        pl.DataFrame(
            treatments,
            schema={
                "patient": pl.Int64,
                "treatment": pl.String,
                "start": pl.Float64,
                "stop": pl.Float64,
                "dose": pl.Float64,
                "rate": pl.Float64,
            },
            orient="row",
        ),
        outcome="y",
        time_unit="day",
        time_zero="as given",
    )


@st.composite
def given_to_one(draw, treatment: int) -> list[tuple[int, float, float, float]]:
    """Doses, also several at once, and intervals that may touch; the last may still be running."""
    rows = [(treatment, time, np.nan, 1.0) for time in draw(st.lists(QUARTERS, max_size=4))]
    edges = sorted(draw(st.lists(QUARTERS, max_size=5, unique=True)))
    pairs = list(pairwise([*edges, np.inf]))
    rows += [(treatment, start, stop, 2.0) for start, stop in pairs if draw(st.booleans())]
    return rows
