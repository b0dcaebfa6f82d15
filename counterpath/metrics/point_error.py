"""How far a single predicted number is from the outcome."""

import math

import numpy as np
from jaxtyping import Float, Shaped

from counterpath.metrics.checks import aligned_points
from counterpath.metrics.estimate import Estimate, mean_by_patient


def squared_error(
    outcome: Float[np.ndarray, "*points"], predicted: Float[np.ndarray, "*points"]
) -> Float[np.ndarray, "*points"]:
    """Squared distance of prediction and outcome at each point.

    error = (ŷ − y)²

    Args:
        outcome: what happened, in outcome units.
        predicted: the prediction ŷ, in outcome units.

    How to read it:
        In outcome units squared; lower is better, 0 is a hit. Large misses count far more than small ones.
        The predictive mean is what minimises it.
    """
    outcome, predicted = aligned_points(outcome=outcome, predicted=predicted)
    return np.asarray(np.square(predicted - outcome))


def absolute_error(
    outcome: Float[np.ndarray, "*points"], predicted: Float[np.ndarray, "*points"]
) -> Float[np.ndarray, "*points"]:
    """Distance of prediction and outcome at each point.

    error = |ŷ − y|

    Args:
        outcome: what happened, in outcome units.
        predicted: the prediction ŷ, in outcome units.

    How to read it:
        In outcome units; lower is better, 0 is a hit. A miss counts by its size. The predictive median is
        what minimises it.
    """
    outcome, predicted = aligned_points(outcome=outcome, predicted=predicted)
    return np.asarray(np.abs(predicted - outcome))


def mse(
    outcome: Float[np.ndarray, " points"],
    predicted: Float[np.ndarray, " points"],
    patients: Shaped[np.ndarray, " points"] | None = None,
) -> Estimate:
    """Mean squared error with its standard error over patients.

    MSE = 1/n Σ (ŷ − y)²

    Args:
        outcome: what happened, in outcome units.
        predicted: the predictive mean, in outcome units.
        patients: the patient of each point. None means one point per patient.

    How to read it:
        In outcome units squared; lower is better. It cannot fall below the variance that the history leaves
        open. A few patients with large outcomes may make up most of it: read the standard error.
    """
    return mean_by_patient(squared_error(outcome, predicted), patients)


def rmse(
    outcome: Float[np.ndarray, " points"],
    predicted: Float[np.ndarray, " points"],
    patients: Shaped[np.ndarray, " points"] | None = None,
) -> Estimate:
    """Root mean squared error with its standard error over patients by the delta method.

    RMSE = √MSE,  SE(RMSE) = SE(MSE) / (2 RMSE)

    Args:
        outcome: what happened, in outcome units.
        predicted: the predictive mean, in outcome units.
        patients: the patient of each point. None means one point per patient.

    How to read it:
        In outcome units; lower is better. The size of a typical miss, with large misses weighing more: it is
        at least the mean absolute error, and far above it when a few points are missed badly.
    """
    squared = mse(outcome, predicted, patients)
    root = math.sqrt(squared.value)
    # The delta method divides by the root; all errors 0 leave no doubt unless there is only one patient.
    error = squared.standard_error / (2 * root) if root > 0 else squared.standard_error
    return Estimate(root, error, squared.patients)


def mae(
    outcome: Float[np.ndarray, " points"],
    predicted: Float[np.ndarray, " points"],
    patients: Shaped[np.ndarray, " points"] | None = None,
) -> Estimate:
    """Mean absolute error with its standard error over patients.

    MAE = 1/n Σ |ŷ − y|

    Args:
        outcome: what happened, in outcome units.
        predicted: the predictive median, in outcome units.
        patients: the patient of each point. None means one point per patient.

    How to read it:
        In outcome units; lower is better. The size of the average miss. The CRPS of a forecast without
        uncertainty is this number: a distribution whose CRPS is not clearly lower adds nothing.
    """
    return mean_by_patient(absolute_error(outcome, predicted), patients)
