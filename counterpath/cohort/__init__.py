"""What was recorded: tables in, patients with their own time out."""

from counterpath.cohort.checks import CheckReport
from counterpath.cohort.cohort import Cohort
from counterpath.cohort.cuts import Cut
from counterpath.cohort.draft import draft_schema
from counterpath.cohort.example import load_example_ward
from counterpath.cohort.findings import (
    CohortError,
    CohortWarning,
    Finding,
    PlanError,
    PlanWarning,
    TimeZoneWarning,
    UnseenDoseWarning,
)
from counterpath.cohort.folder import read_cohort
from counterpath.cohort.grid import Grid, choose_grid
from counterpath.cohort.plan import Plan
from counterpath.cohort.records import Observations, TreatmentEvents
from counterpath.cohort.scaling import Scaler, fit_scaler
from counterpath.cohort.schema import Schema, Treatment, Variable

__all__ = [
    "CheckReport",
    "Cohort",
    "CohortError",
    "CohortWarning",
    "Cut",
    "Finding",
    "Grid",
    "Observations",
    "Plan",
    "PlanError",
    "PlanWarning",
    "Scaler",
    "Schema",
    "TimeZoneWarning",
    "Treatment",
    "TreatmentEvents",
    "UnseenDoseWarning",
    "Variable",
    "choose_grid",
    "draft_schema",
    "fit_scaler",
    "load_example_ward",
    "read_cohort",
]
