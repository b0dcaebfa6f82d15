"""The front door: models under one contract."""

from counterpath.estimators.contract import Estimator, NotFittedError
from counterpath.estimators.last_value import LastValue
from counterpath.estimators.oracle import Oracle

__all__ = ["Estimator", "LastValue", "NotFittedError", "Oracle"]
