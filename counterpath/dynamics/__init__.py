"""The equations: a vector field with its weights as an argument, the law of these weights, and the solver."""

from counterpath.dynamics.brownian import Increments, brownian_increments
from counterpath.dynamics.solver import WeightPath, solve, weight_paths
from counterpath.dynamics.vector_field import VectorField
from counterpath.dynamics.weight_law import FixedWeights, WeightLaw, WeightProcess

__all__ = [
    "FixedWeights",
    "Increments",
    "VectorField",
    "WeightLaw",
    "WeightPath",
    "WeightProcess",
    "brownian_increments",
    "solve",
    "weight_paths",
]
