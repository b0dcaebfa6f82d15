"""Patients in groups: by a static covariate, or as the user says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool

from counterpath.cohort.findings import CohortError, did_you_mean
from counterpath.cohort.tables_out import static_table

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort

MOST_SUBGROUPS = 20


def subgroups(
    cohort: Cohort, by: str | Mapping[str, Bool[np.ndarray, " patients"]]
) -> dict[str, Bool[np.ndarray, " patients"]]:
    """A mask of patients for each subgroup's name.

    Args:
        cohort: All patients.
        by: A static covariate with a few different values, or the masks themselves.
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
    if len(values) > MOST_SUBGROUPS:
        raise CohortError(
            f"{by!r} has {len(values)} values. Give masks: by={{'low': values < 3, 'high': values >= 3}}."
        )
    return {f"{by} {'unknown' if value is None else value}": column.eq_missing(value).to_numpy() for value in values}
