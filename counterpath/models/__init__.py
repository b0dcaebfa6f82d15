"""The networks: encoder, decoder and head, what goes into them, and the objective that they are trained on."""

from counterpath.models.inputs import Inputs, Targets
from counterpath.models.likelihood import Likelihood, log_density
from counterpath.models.network import NeuralCDE, Weights, build_network
from counterpath.models.objective import Batch, evidence_bound
from counterpath.models.sizes import NetworkSizes

__all__ = [
    "Batch",
    "Inputs",
    "Likelihood",
    "NetworkSizes",
    "NeuralCDE",
    "Targets",
    "Weights",
    "build_network",
    "evidence_bound",
    "log_density",
]
