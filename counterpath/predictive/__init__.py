"""What a model answers: predictive distributions, effects, and how they did."""

from counterpath.predictive.draws import Draws
from counterpath.predictive.effect import Direction, Effect
from counterpath.predictive.evaluation import Evaluation, evaluate_prediction
from counterpath.predictive.law import Law, NotKeptError, join_draws, join_patients
from counterpath.predictive.mixture import Mixture
from counterpath.predictive.noise import Noise
from counterpath.predictive.prediction import Prediction
from counterpath.predictive.ranking import Ranking

__all__ = [
    "Direction",
    "Draws",
    "Effect",
    "Evaluation",
    "Law",
    "Mixture",
    "Noise",
    "NotKeptError",
    "Prediction",
    "Ranking",
    "evaluate_prediction",
    "join_draws",
    "join_patients",
]
