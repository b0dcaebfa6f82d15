"""Patients in groups: by a static covariate, or as the user says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from jaxtyping import Bool

from counterpath.cohort.findings import CohortError, did_you_mean
from counterpath.cohort.rounding import rounded
from counterpath.cohort.tables_out import static_table

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort

MOST_SUBGROUPS = 20
EDGE_DIGITS = 3


def subgroups(
    cohort: Cohort, by: str | Mapping[str, Bool[np.ndarray, " patients"]]
) -> dict[str, Bool[np.ndarray, " patients"]]:
    """A mask of patients for each subgroup's name.

    Args:
        cohort: All patients.
        by: A static covariate, or the masks themselves. Numbers of which there are many come in thirds.
    """
    if not isinstance(by, str):
        masks = {name: np.asarray(mask) for name, mask in by.items()}
        for name, mask in masks.items():
            if mask.dtype != bool or mask.shape != (len(cohort),):
                raise CohortError(f"Subgroup {name!r} is not a mask with a True or False for each of the patients.")
            if not mask.any():
                raise CohortError(f"Subgroup {name!r} has no patient.")
        return masks
    names = [variable.name for variable in cohort.schema.static]
    if by not in names:
        raise CohortError(f"{by!r} is no static covariate of this cohort. {did_you_mean(by, names)}")
    column = static_table(cohort)[by]
    values = column.unique().sort().to_list()
    if len(values) > MOST_SUBGROUPS and column.dtype.is_numeric():
        return _thirds(by, column)
    if len(values) > MOST_SUBGROUPS:
        raise CohortError(
            f"{by!r} has {len(values)} different values, too many for subgroups. Ask by a covariate with at most "
            f"{MOST_SUBGROUPS}, or make one in your table that puts several of these together."
        )
    return {f"{by} {'unknown' if value is None else value}": column.eq_missing(value).to_numpy() for value in values}


def _thirds(by: str, column: pl.Series) -> dict[str, Bool[np.ndarray, " patients"]]:
    """Low, middle and high, where patients have all kinds of values; who has none is a group of their own."""
    values = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    low, high = (rounded(float(edge), EDGE_DIGITS) for edge in np.nanquantile(values, (1 / 3, 2 / 3)))
    masks = {
        f"{by} below {low:g}": values < low,
        f"{by} {low:g} to {high:g}": (values >= low) & (values <= high),
        f"{by} above {high:g}": values > high,
        f"{by} unknown": np.isnan(values),
    }
    return {name: mask for name, mask in masks.items() if mask.any()}
