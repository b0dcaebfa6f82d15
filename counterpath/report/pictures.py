"""Figures inside a page."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure as a page holds it.

    Attributes:
        source: The drawing itself, as a data address.
        says: What it shows, for those who cannot see it.
    """

    source: str
    says: str


def picture(figure: Figure, says: str) -> Picture:
    """As SVG: sharp at every size and in print; the same bytes for the same drawing."""
    file = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "counterpath", "savefig.bbox": "tight"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return Picture(f"data:image/svg+xml;base64,{b64encode(file.getvalue()).decode()}", says)
