"""How training went: log likelihood of training outcomes and validation score, epoch by epoch."""

from __future__ import annotations

from os import PathLike

import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from counterpath.figures.style import INK, OUTCOME, TREATMENTS, house_style

SHOWN = 0.1  # the first of so large a share of epochs would hide all that follows


def draw_training(
    history: pl.DataFrame, *, counts_from: float = 0.0, path: str | PathLike[str] | None = None
) -> Figure:
    """Draw both curves of every posterior.

    Args:
        history: A row per epoch and posterior, as `model.history_` has them.
        counts_from: Share of the epochs before which no state is kept, such as while the KL comes in.
        path: Write the picture to this file too.
    """
    with house_style():
        figure = Figure(figsize=(7.6, 2.9), layout="constrained")
        axes = figure.subplots()
        epochs = history.select(pl.col("epoch").max()).item()
        for own in history.partition_by("posterior", maintain_order=True):
            axes.plot(own["epoch"], own["log_likelihood"], color=OUTCOME, lw=0.9, alpha=0.6)
            scored = own.drop_nulls("validation").drop_nans("validation")
            axes.plot(scored["epoch"], scored["validation"], "o-", color=TREATMENTS[0], lw=1.2, ms=2.8)
            best = scored.filter(pl.col("epoch") >= counts_from * epochs).sort("validation").tail(1)
            axes.plot(best["epoch"], best["validation"], "o", mfc="none", mec=INK, ms=8)
        late = history.filter(pl.col("epoch") > SHOWN * pl.col("epoch").max())
        shown = pl.concat([late["log_likelihood"], late["validation"]]).drop_nulls().drop_nans().to_numpy()
        low, high = shown.min(), shown.max()
        axes.set_ylim(low - 0.08 * (high - low) - 1e-9, high + 0.08 * (high - low) + 1e-9)
        axes.set_xlabel("epoch")
        axes.set_ylabel("log density per outcome")
        handles = [
            Line2D([], [], color=OUTCOME, lw=1.2, label="training patients"),
            Line2D([], [], color=TREATMENTS[0], marker="o", ms=4, lw=1.2, label="validation patients"),
            Line2D([], [], color=INK, marker="o", mfc="none", ms=8, lw=0, label="best"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8.5)
        if path is not None:
            figure.savefig(path)
    return figure
