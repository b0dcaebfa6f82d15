"""The equations: a vector field with its weights as an argument, the law of these weights, and the solver."""

from counterpath.dynamics.brownian import Increments, brownian_increments
from counterpath.dynamics.solver import solve, weight_path
from counterpath.dynamics.vector_field import VectorField
from counterpath.dynamics.weight_law import FixedWeights, WeightLaw, WeightProcess

__all__ = [
    "FixedWeights",
    "Increments",
    "VectorField",
    "WeightLaw",
    "WeightProcess",
    "brownian_increments",
    "solve",
    "weight_path",
]
