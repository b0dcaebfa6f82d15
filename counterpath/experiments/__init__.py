"""The paper's experiments, as data, and one runner for all of them."""

from counterpath.experiments.cells import ReproductionError
from counterpath.experiments.entry import reproduce

__all__ = ["ReproductionError", "reproduce"]
