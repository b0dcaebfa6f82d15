"""Worlds with known counterfactuals: patients whose other futures can be looked up."""

from counterpath.simulators.semi_synthetic import SemiSynthetic, simulate_semi_synthetic
from counterpath.simulators.semi_synthetic_truth import SemiSyntheticTruth
from counterpath.simulators.tumor_growth import TumorSimulation, load_tumor_growth, simulate_tumor_growth
from counterpath.simulators.tumor_truth import TumorTruth

__all__ = [
    "SemiSynthetic",
    "SemiSyntheticTruth",
    "TumorSimulation",
    "TumorTruth",
    "load_tumor_growth",
    "simulate_semi_synthetic",
    "simulate_tumor_growth",
]
