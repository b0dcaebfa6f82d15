"""counterpath: what would happen to this patient under another treatment plan, and how sure are we?

Names are loaded when they are first used, so that `import counterpath` is quick and brings no jax.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from counterpath._version import __version__

if TYPE_CHECKING:
    from counterpath.cohort import (
        Cohort,
        CohortError,
        CohortWarning,
        Plan,
        PlanError,
        PlanWarning,
        TimeZoneWarning,
        UnseenDoseWarning,
        load_example_ward,
        read_cohort,
    )
    from counterpath.estimators import BNCDE, TECDE, DeepEnsemble, LastValue, ModelFileError, Oracle, load
    from counterpath.figures import draw_patients
    from counterpath.importers import MedsSpec, read_meds, read_mimic_extract
    from counterpath.predictive import UnsupportedPlanWarning
    from counterpath.report import write_report
    from counterpath.simulators import load_tumor_growth, simulate_semi_synthetic, simulate_tumor_growth

_HOMES = {
    "BNCDE": "estimators",
    "Cohort": "cohort",
    "CohortError": "cohort",
    "CohortWarning": "cohort",
    "DeepEnsemble": "estimators",
    "LastValue": "estimators",
    "MedsSpec": "importers",
    "ModelFileError": "estimators",
    "Oracle": "estimators",
    "Plan": "cohort",
    "PlanError": "cohort",
    "PlanWarning": "cohort",
    "TECDE": "estimators",
    "TimeZoneWarning": "cohort",
    "UnseenDoseWarning": "cohort",
    "UnsupportedPlanWarning": "predictive",
    "draw_patients": "figures",
    "load": "estimators",
    "load_example_ward": "cohort",
    "load_tumor_growth": "simulators",
    "read_cohort": "cohort",
    "read_meds": "importers",
    "read_mimic_extract": "importers",
    "simulate_semi_synthetic": "simulators",
    "simulate_tumor_growth": "simulators",
    "write_report": "report",
}

__all__ = [
    "BNCDE",
    "TECDE",
    "Cohort",
    "CohortError",
    "CohortWarning",
    "DeepEnsemble",
    "LastValue",
    "MedsSpec",
    "ModelFileError",
    "Oracle",
    "Plan",
    "PlanError",
    "PlanWarning",
    "TimeZoneWarning",
    "UnseenDoseWarning",
    "UnsupportedPlanWarning",
    "__version__",
    "draw_patients",
    "load",
    "load_example_ward",
    "load_tumor_growth",
    "read_cohort",
    "read_meds",
    "read_mimic_extract",
    "simulate_semi_synthetic",
    "simulate_tumor_growth",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'counterpath' has no attribute {name!r}")
    return getattr(import_module(f"counterpath.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
