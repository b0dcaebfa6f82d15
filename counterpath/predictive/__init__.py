"""What a model answers: predictive distributions, effects, and how they did."""

from counterpath.predictive.draws import Draws
from counterpath.predictive.effect import Direction, Effect
from counterpath.predictive.evaluation import Evaluation, evaluate_points
from counterpath.predictive.experience import Experience
from counterpath.predictive.law import Law, NotKeptError, join_draws, join_patients
from counterpath.predictive.mixture import Mixture
from counterpath.predictive.noise import Noise
from counterpath.predictive.points import Points, points_of
from counterpath.predictive.prediction import Prediction
from counterpath.predictive.ranking import Ranking
from counterpath.predictive.recalibration import LevelMap, Recalibrated, fit_levels
from counterpath.predictive.support import Support, UnsupportedPlanWarning, support_of

__all__ = [
    "Direction",
    "Draws",
    "Effect",
    "Evaluation",
    "Experience",
    "Law",
    "LevelMap",
    "Mixture",
    "Noise",
    "NotKeptError",
    "Points",
    "Prediction",
    "Ranking",
    "Recalibrated",
    "Support",
    "UnsupportedPlanWarning",
    "evaluate_points",
    "fit_levels",
    "join_draws",
    "join_patients",
    "points_of",
    "support_of",
]
