"""The front door: models under one contract."""

from counterpath.estimators.contract import Estimator, NotFittedError
from counterpath.estimators.last_value import LastValue

__all__ = ["Estimator", "LastValue", "NotFittedError"]
