"""A tiny made-up data set, for a first look and for examples."""

from __future__ import annotations

from pathlib import Path

from counterpath.cohort.cohort import Cohort
from counterpath.cohort.folder import read_cohort
from counterpath.cohort.frames import FrameKind

WARD = Path(__file__).parent / "ward"


def load_example_ward(*, frames: FrameKind = "polars") -> Cohort:
    """Thirty made-up patients of an imaginary ward, with irregular visits.

    Outcome: mean arterial pressure (mmHg). Covariates: heart rate, rhythm. Static: age, sex. Treatments: doses of fluid
    (ml) and an infusion of norepinephrine (µg/kg/min). Nobody's data: `tools/make_ward.py` wrote it.

    Args:
        frames: The kind of frame that the cohort gives back.
    """
    return read_cohort(WARD, frames=frames)
