"""Pictures: arrays in, figures out."""

from counterpath.figures.patients import draw_patients

__all__ = ["draw_patients"]
