"""Scores of predictions: is it right, is it sure, and is it as sure as it should be.

Every function takes numpy arrays. Scores come one per point, with draws or mixture components on the first
axis, so that they can be averaged by patient, horizon or subgroup; `mean_by_patient` and `paired_ratio` do
that with errors that respect patients. Each docstring ends with how to read the number.
"""

from counterpath.metrics.bootstrap import Ratio, paired_ratio
from counterpath.metrics.coverage import covered
from counterpath.metrics.crps import crps_draws, crps_normal_mixture
from counterpath.metrics.deferral import DeferralCurve, deferral_curve
from counterpath.metrics.estimate import Estimate, mean_by_patient
from counterpath.metrics.interval_score import interval_score
from counterpath.metrics.log_score import log_score_normal_mixture
from counterpath.metrics.pit import pit_draws, pit_normal_mixture, randomised_pit
from counterpath.metrics.point_error import absolute_error, mae, mse, rmse, squared_error
from counterpath.metrics.uniformity import Uniformity, pit_uniformity
from counterpath.metrics.width import interval_width

__all__ = [
    "DeferralCurve",
    "Estimate",
    "Ratio",
    "Uniformity",
    "absolute_error",
    "covered",
    "crps_draws",
    "crps_normal_mixture",
    "deferral_curve",
    "interval_score",
    "interval_width",
    "log_score_normal_mixture",
    "mae",
    "mean_by_patient",
    "mse",
    "paired_ratio",
    "pit_draws",
    "pit_normal_mixture",
    "pit_uniformity",
    "randomised_pit",
    "rmse",
    "squared_error",
]
