"""Patients of the report under two plans."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpath.cohort import Cohort, CohortError, Plan, PlanWarning
from counterpath.cohort.schema import Schema
from counterpath.estimators import Estimator
from counterpath.figures import Forecast, draw_forecasts
from counterpath.predictive import Effect, Prediction
from counterpath.report.pictures import Picture, picture

EXAMPLES = 10
STEPS = 5  # horizons
EFFECT_STEPS = slice(0, None, 2)  # of them, for effects
BACK = 3  # times the longest horizon
ASKED = 200  # patients, for effects and support: enough for a table


@dataclass(frozen=True, eq=False)
class Examples:
    """What the model answers about two plans.

    Attributes:
        names: Of the plans; the effect is of the first against the second.
        predictions: Of all patients, under each plan.
        effect: Of the one against the other.
        picture: Of some patients.
        absent: How many were not under observation when the plans were asked about.
    """

    names: tuple[str, str]
    predictions: tuple[Prediction, Prediction]
    effect: Effect
    picture: Picture
    absent: int = 0


def usual_plans(schema: Schema) -> dict[str, Plan]:
    """The first treatment once, now, at its usual dose or rate; and nothing."""
    treatment = schema.treatments[0]
    is_dose = treatment.dose is not None
    given = Plan.dose(treatment.name) if is_dose else Plan.infusion(treatment.name)
    return {f"{treatment.name} {'now' if is_dose else 'from now on'}": given, "no treatment": Plan.none()}


def ask_examples(
    model: Estimator, cohort: Cohort, outcome: str, plans: Mapping[str, Plan], at: Any, progress: bool
) -> Examples:
    """Ask about two plans.

    Args:
        model: Fitted.
        cohort: Patients that it has not seen.
        outcome: Which.
        plans: Two, by name.
        at: When, as for `cohort.until`; default: at the end of each record.
        progress: Show it, where it takes long.
    """
    if len(plans) != 2:
        raise CohortError(f"The report compares two plans, by name; {len(plans)} were given.")
    history = cohort.until(cohort.history_end if at is None else at, ended="drop")
    if not len(history):
        raise CohortError("No patient was under observation at that time, so there is nobody to show.")
    some = history.take(np.linspace(0, len(history) - 1, min(ASKED, len(history))).astype(int))
    horizons = model.even_horizons(STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlanWarning)  # the page says it where it stands
        one, other = (
            model.predict(some, plan, horizons=horizons, draws=model.draws_to_judge, progress=progress)[outcome]
            for plan in plans.values()
        )
        drawn = _drawn(some, outcome, plans, (one, other))
    first, second = plans
    return Examples((first, second), (one, other), _effect(some, plans, one, other), drawn, len(cohort) - len(history))


def _effect(history: Cohort, plans: Mapping[str, Plan], one: Prediction, other: Prediction) -> Effect:
    """What `model.effect` would say: both predictions have the same draws of the weights."""
    plan, versus = plans.values()
    draws = one.laws[0].expected()[..., EFFECT_STEPS] - other.laws[0].expected()[..., EFFECT_STEPS]
    both = None if one.support is None or other.support is None else one.support.weaker(other.support).at(EFFECT_STEPS)
    return Effect(history, plan, versus, one.horizons[EFFECT_STEPS], one.outcomes[0], draws, both)


def _drawn(history: Cohort, outcome: str, plans: Mapping[str, Plan], predictions: Sequence[Prediction]) -> Picture:
    """From the one that the model is surest of to the one that it is least sure of."""
    lower, upper = predictions[0].interval(0.95)
    order = np.argsort((upper - lower)[:, -1])
    chosen = order[np.linspace(0, len(order) - 1, min(EXAMPLES, len(order))).astype(int)]
    horizons = predictions[0].horizons
    bands = []
    for (name, plan), prediction in zip(plans.items(), predictions, strict=True):
        lower, upper = prediction.interval(0.95)
        bands.append(Forecast(name, plan, horizons, lower[chosen], prediction.median[chosen], upper[chosen]))
    figure = draw_forecasts(history.take(chosen), bands, back=BACK * float(horizons[-1]), outcome=outcome, columns=3)
    return picture(figure, f"{len(chosen)} patients with their past and 95% bands under {' and '.join(plans)}")
