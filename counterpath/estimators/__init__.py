"""The front door: models with one contract."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from counterpath.estimators.contract import Estimator, NotFittedError
from counterpath.estimators.last_value import LastValue
from counterpath.estimators.oracle import Oracle

if TYPE_CHECKING:
    from counterpath.estimators.bncde import BNCDE
    from counterpath.estimators.configuration import Configuration, ConfigurationError
    from counterpath.estimators.deep_ensemble import DeepEnsemble
    from counterpath.estimators.model_file import ModelFileError, load
    from counterpath.estimators.tecde import TECDE

_NEED_JAX = {
    "BNCDE": "bncde",
    "Configuration": "configuration",
    "ConfigurationError": "configuration",
    "DeepEnsemble": "deep_ensemble",
    "ModelFileError": "model_file",
    "TECDE": "tecde",
    "load": "model_file",
}

__all__ = [
    "BNCDE",
    "TECDE",
    "Configuration",
    "ConfigurationError",
    "DeepEnsemble",
    "Estimator",
    "LastValue",
    "ModelFileError",
    "NotFittedError",
    "Oracle",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _NEED_JAX:
        raise AttributeError(f"module 'counterpath.estimators' has no attribute {name!r}")
    return getattr(import_module(f"counterpath.estimators.{_NEED_JAX[name]}"), name)
