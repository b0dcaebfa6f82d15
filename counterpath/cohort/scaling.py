"""The scales that a model works on, fitted on training patients only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from counterpath.cohort.findings import CohortError
from counterpath.cohort.rounding import rounded
from counterpath.cohort.schema import Schema, Strict, Variable
from counterpath.cohort.transforms import AnyTransform, Standard, TransformName, fit_transform

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort


DOSE_DIGITS = 3  # of the usual dose


class Scale(Strict):
    """One variable: transform, then subtract `mean` and divide by `std`. Categories pass as they are."""

    name: str
    transform: AnyTransform = Standard()
    mean: float = 0.0
    std: float = 1.0
    lower: float | None = None
    upper: float | None = None
    levels: tuple[str, ...] = ()

    def forward(self, values: Float64[np.ndarray, "*values"]) -> Float64[np.ndarray, "*values"]:
        """To mean 0 and standard deviation 1 on the training patients; gaps stay gaps."""
        result = np.full_like(values, np.nan)
        present = ~np.isnan(values)
        result[present] = (self.transform.forward(values[present]) - self.mean) / self.std
        return result

    def inverse(self, scaled: Float64[np.ndarray, "*values"]) -> Float64[np.ndarray, "*values"]:
        """Back to the variable's unit, within its bounds. Increasing: quantiles stay the quantiles they were."""
        values = self.transform.inverse(scaled * self.std + self.mean)
        return np.clip(values, self.lower, self.upper) if (self.lower, self.upper) != (None, None) else values


class Scaler(Strict):
    """Scales of all outcomes, covariates and static covariates, and the amounts that count as one dose.

    Attributes:
        variables: Outcomes, then covariates.
        static: Static covariates.
        doses: The usual dose of each treatment; 1 where there was none.
        rates: The usual rate of each treatment; 1 where there was none.
        treatments: Names of the treatments, with whether they came as doses and as intervals.
    """

    variables: tuple[Scale, ...]
    static: tuple[Scale, ...]
    doses: tuple[float, ...]
    rates: tuple[float, ...]
    treatments: tuple[tuple[str, bool, bool], ...] = ()

    def require_same(self, schema: Schema) -> None:
        """An error where a cohort means other things than the one that the scales were fitted on."""
        mine = [(s.name, s.levels) for s in (*self.variables, *self.static)]
        theirs = [(v.name, v.levels) for v in (*schema.variables, *schema.static)]
        if mine != theirs or self.treatments != _kinds_of_treatment(schema):
            raise CohortError(
                "These patients have other variables, categories or treatments than the training patients. "
                "Read their tables with like=train."
            )

    def outcome(self, name: str) -> Scale:
        """The scale of one outcome."""
        for scale in self.variables:
            if scale.name == name:
                return scale
        raise CohortError(f"There is no variable {name!r} among {', '.join(s.name for s in self.variables)}.")

    def values(self, values: Float64[np.ndarray, "rows variables"]) -> Float64[np.ndarray, "rows variables"]:
        """Records on the model's scale."""
        return _columns(self.variables, values)

    def static_values(self, values: Float64[np.ndarray, "patients static"]) -> Float64[np.ndarray, "patients static"]:
        """Static covariates on the model's scale."""
        return _columns(self.static, values)


def _columns(scales: tuple[Scale, ...], values: np.ndarray) -> np.ndarray:
    scaled = np.empty_like(values, order="F")
    for j, scale in enumerate(scales):
        scaled[:, j] = scale.forward(values[:, j])
    return scaled


def fit_scaler(train: Cohort, *, transform: TransformName = "auto") -> Scaler:
    """Scales from the training patients. Nothing of anybody else enters.

    Args:
        train: The training patients.
        transform: Of the outcomes; covariates are standardised.
    """
    values, schema = train.records.values, train.schema
    scales = []
    for j, variable in enumerate(schema.variables):
        seen = values[:, j][~np.isnan(values[:, j])]
        if j < len(schema.outcomes) and not len(seen):
            raise CohortError(f"Outcome {variable.name!r} was never recorded in the training patients.")
        scales.append(_fit(variable, seen, transform if j < len(schema.outcomes) else "standard"))
    static = [_fit(v, train.static_values[:, j], "standard") for j, v in enumerate(schema.static)]
    usual = []
    for wanted in (train.events.is_dose, ~train.events.is_dose):
        amounts = [train.events.amount[wanted & (train.events.treatment == i)] for i in range(len(schema.treatments))]
        usual.append(tuple(rounded(float(np.median(a)), DOSE_DIGITS) if len(a) else 1.0 for a in amounts))
    return Scaler(
        variables=tuple(scales),
        static=tuple(static),
        doses=usual[0],
        rates=usual[1],
        treatments=_kinds_of_treatment(schema),
    )


def _kinds_of_treatment(schema: Schema) -> tuple[tuple[str, bool, bool], ...]:
    return tuple((t.name, t.dose is not None, t.rate is not None) for t in schema.treatments)


def _fit(variable: Variable, values: np.ndarray, transform: TransformName) -> Scale:
    seen = values[~np.isnan(values)]
    if variable.kind == "categorical" or not len(seen):
        return Scale(name=variable.name, levels=variable.levels)
    chosen = fit_transform(transform, seen, variable.lower)
    transformed = chosen.forward(seen)
    std = float(np.std(transformed))
    return Scale(
        name=variable.name,
        transform=chosen,
        mean=float(np.mean(transformed)),
        std=std if std > 1e-12 * max(1.0, abs(float(np.mean(transformed)))) else 1.0,  # a constant stays a constant
        lower=variable.lower,
        upper=variable.upper,
    )
