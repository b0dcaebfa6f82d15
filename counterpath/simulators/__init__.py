"""Worlds with known counterfactuals: patients whose other futures can be looked up."""

from counterpath.simulators.tumor_growth import TumorSimulation, load_tumor_growth, simulate_tumor_growth
from counterpath.simulators.tumor_truth import TumorTruth

__all__ = ["TumorSimulation", "TumorTruth", "load_tumor_growth", "simulate_tumor_growth"]
