"""Pictures: arrays in, figures out."""

from counterpath.figures.forecasts import Forecast, draw_forecasts
from counterpath.figures.patients import draw_patients

__all__ = ["Forecast", "draw_forecasts", "draw_patients"]
