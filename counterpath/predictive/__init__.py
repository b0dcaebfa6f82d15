"""What a model answers: predictive distributions, and how they did."""

from counterpath.predictive.evaluation import Evaluation, evaluate_prediction
from counterpath.predictive.prediction import Prediction

__all__ = ["Evaluation", "Prediction", "evaluate_prediction"]
