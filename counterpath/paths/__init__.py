"""Records become functions of time, and their increments on the solver's grid."""

from counterpath.paths.control_path import INTERPOLATIONS, ControlPath, Interpolation, PathError, control_path
from counterpath.paths.increments import PartialSteps, PathIncrements, partial_steps, path_increments
from counterpath.paths.plan_path import PlanPath, plan_path

__all__ = [
    "INTERPOLATIONS",
    "ControlPath",
    "Interpolation",
    "PartialSteps",
    "PathError",
    "PathIncrements",
    "PlanPath",
    "control_path",
    "partial_steps",
    "path_increments",
    "plan_path",
]
