"""Static covariates as numbers: a column for each level, or the value and whether it is missing."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort, Scaler, Schema


def static_names(schema: Schema) -> list[str]:
    """What each column is."""
    names = []
    for variable in schema.static:
        if variable.kind == "categorical":
            names += [f"{variable.name}={level}" for level in variable.levels]
        else:
            names += [variable.name, f"{variable.name}:missing"]
    return names


def static_columns(cohort: Cohort, scaler: Scaler) -> Float64[np.ndarray, "patients columns"]:
    """Of each patient, on the model's scale."""
    scaled = scaler.static_values(cohort.static_values)
    columns = []
    for j, variable in enumerate(cohort.schema.static):
        value = scaled[:, j]
        if variable.kind == "categorical":
            columns += [(value == code).astype(np.float64) for code in range(len(variable.levels))]
        else:
            columns += [np.nan_to_num(value), np.isnan(value).astype(np.float64)]
    return np.stack(columns, axis=1) if columns else np.empty((len(cohort), 0))
