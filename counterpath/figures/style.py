"""One look for all figures: quiet axes, colours that everybody can tell apart, units on labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl

# Okabe and Ito (2008): distinct for the colour-blind, and in print.
INK = "#222222"
FAINT = "#9a9a9a"
OUTCOME = "#0072B2"
TREATMENTS = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

_SETTINGS: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "savefig.bbox": "tight",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the library's look without touching the user's settings."""
    with mpl.rc_context(_SETTINGS):
        yield
