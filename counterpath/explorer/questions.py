"""Questions about patients, several at once: which record and plans they mean, and what the model says of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float64

from counterpath.cohort import Cohort, Plan, Schema
from counterpath.cohort.findings import PlanWarning
from counterpath.cohort.plan_parts import PatientId
from counterpath.estimators import Estimator
from counterpath.explorer.limits import MOST_HORIZONS
from counterpath.explorer.messages import DRAWS, MANY_DRAWS, Band, Behind, Change, Outlook
from counterpath.explorer.problems import ProblemError
from counterpath.predictive import Direction, Effect, Prediction, Ranking, Support
from counterpath.predictive.prediction import BANDS

UNSURE = 0.9  # of validation windows, the model is surer about so many: then somebody else should look
SEED = 0
EXPECTATION = 0.95  # of the band that the expected outcome lies in
Draws = Float64[np.ndarray, "draws horizons"]


@dataclass(frozen=True)
class Size:
    """Of questions, for which programs are compiled before the first is asked.

    Attributes:
        draws: Of the weights.
        horizons: At most; fewer are padded.
        together: Forecasts that are made at once.
    """

    draws: int
    horizons: int
    together: int


# What others ask now and then is answered a few at a time, since each number of forecasts is a program of its own.
SIZES = (Size(DRAWS, 5, 64), Size(DRAWS, 15, 64), Size(DRAWS, MOST_HORIZONS, 4), Size(MANY_DRAWS, MOST_HORIZONS, 4))


@dataclass(frozen=True, eq=False)
class Question:
    """One patient, and the plans that are asked about.

    Attributes:
        history: Of the patient, and of nobody else.
        plans: By name.
        horizons: Elapsed times.
        draws: Of the weights.
        outcome: Which, by number.
        notes: What there was to say about the record.
    """

    history: Cohort
    plans: Mapping[str, Plan]
    horizons: tuple[float, ...]
    draws: int
    outcome: int = 0
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> tuple[Any, ...]:
        """Questions of one kind are answered together."""
        return self.history.schema, self.horizons, self.draws, self.outcome

    @property
    def size(self) -> Size:
        """The smallest that holds it."""
        return next(size for size in SIZES if size.draws == self.draws and size.horizons >= len(self.horizons))


@dataclass(frozen=True, eq=False)
class Told:
    """What the model says about one patient under some plans.

    Attributes:
        question: That was asked.
        outlooks: By plan.
        expected: Outcomes of each draw, by plan, with the same draws for all.
        supports: By plan.
        warnings: About the plans.
    """

    question: Question
    outlooks: dict[str, Outlook]
    expected: dict[str, Draws]
    supports: dict[str, Support | None]
    warnings: tuple[str, ...]

    def effect(self, plan: str, versus: str) -> Effect:
        """Of one plan against another."""
        asked, (one, other) = self.question, (self.supports[name] for name in (plan, versus))
        return Effect(
            asked.history,
            asked.plans[plan],
            asked.plans[versus],
            np.array(asked.horizons),
            asked.history.schema.outcomes[asked.outcome],
            (self.expected[plan] - self.expected[versus])[:, None],
            None if one is None or other is None else one.weaker(other),
        )

    def change(self, plan: str, versus: str, better: Direction | None, margin: float = 0.0) -> Change:
        """The same in numbers."""
        effect = self.effect(plan, versus)
        lower, upper = effect.interval(0.95)
        benefit = None if better is None else effect.probability_of_benefit(better=better, margin=margin)[0]
        return Change(
            mean=_numbers(effect.mean[0]),
            lower=_numbers(lower[0]),
            upper=_numbers(upper[0]),
            probability_of_benefit=None if benefit is None else _numbers(benefit),
            cautions=() if effect.support is None else cautions(effect.support),
        )

    def probability_best(self, better: Direction) -> dict[str, tuple[float, ...]]:
        """Of each plan: that its expected outcome is the best of all."""
        asked = self.question
        expected = np.stack([draws[:, None] for draws in self.expected.values()])
        ranking = Ranking(
            asked.history,
            dict(asked.plans),
            np.array(asked.horizons),
            asked.history.schema.outcomes[asked.outcome],
            better,
            expected,
        )
        return {
            name: _numbers(of_plan[0]) for name, of_plan in zip(self.expected, ranking.probability_best, strict=True)
        }


def in_unit_of(schema: Schema, plan: Plan) -> Plan:
    """The same plan in the unit that one without a unit has, so that it can stand beside others."""
    unit = schema.time_unit
    return plan.model_copy(update={"time_unit": unit}) if plan.time_unit is None else plan.in_unit(unit)


def warnings_of(question: Question) -> tuple[str, ...]:
    """What to know about record and plans; what is wrong with a plan is an error here, of this question alone."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PlanWarning)
        for plan in question.plans.values():
            plan.resolve(question.history)
    of_plans = [str(warning.message) for warning in said if issubclass(warning.category, PlanWarning)]
    return tuple(dict.fromkeys([*question.notes, *of_plans]))


def tell(model: Estimator, questions: Sequence[Question]) -> list[Told | ProblemError]:
    """Answer questions of one kind with one call of the model."""
    first, rows = questions[0], [(i, name) for i, question in enumerate(questions) for name in question.plans]
    said = [warnings_of(question) for question in questions]
    plans: dict[PatientId, Plan] = {str(row): questions[i].plans[name] for row, (i, name) in enumerate(rows)}
    histories = [
        # Times count from a patient's own zero; where that lies on a clock makes no difference to a model.
        replace(questions[i].history, origins=pl.Series([0.0])).renamed(pl.Series([str(row)]))
        for row, (i, _) in enumerate(rows)
    ]
    asked_for = len(first.horizons)
    padding = first.horizons[-1:] * (first.size.horizons - asked_for)
    # Each question has been told of its plans already, and what is too large is found below.
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", PlanWarning)
        prediction = model.predict(
            Cohort.joined(histories),
            Plan.per_patient(plans),
            horizons=first.horizons + padding,
            draws=first.draws,
            seed=SEED,
            progress=False,
        )
        prediction = prediction[prediction.outcomes[first.outcome].name]
        expected = prediction.laws[0].expected()[..., :asked_for]
        outlooks = _outlooks(prediction, expected)
    told: list[Told | ProblemError] = []
    for i, question in enumerate(questions):
        places = {name: rows.index((i, name)) for name in question.plans}
        finite = {name: outlook for name, place in places.items() if (outlook := outlooks[place]) is not None}
        if len(finite) < len(places):
            detail = "No finite number comes out of this. Amounts, values or times are far too large."
            told.append(ProblemError(422, "This cannot be asked", detail))
            continue
        told.append(
            Told(
                question,
                finite,
                {name: expected[:, place] for name, place in places.items()},
                {name: _support_of(prediction, place) for name, place in places.items()},
                said[i],
            )
        )
    return told


def _support_of(prediction: Prediction, place: int) -> Support | None:
    return None if prediction.support is None else prediction.support.patients(slice(place, place + 1))


def _outlooks(prediction: Prediction, expected: Float64[np.ndarray, "draws rows horizons"]) -> list[Outlook | None]:
    """Of each row, at the horizons that were asked for; none where the numbers are too large to be told."""
    number = expected.shape[-1]

    def asked(values: np.ndarray) -> np.ndarray:
        return values[:, :number]

    bands = {level: tuple(asked(end) for end in prediction.interval(level)) for level in BANDS}
    mean, median = asked(prediction.mean), asked(prediction.median)
    model_std, outcome_std = asked(prediction.model_uncertainty), asked(prediction.outcome_uncertainty)
    expectation = np.quantile(expected, [(1 - EXPECTATION) / 2, (1 + EXPECTATION) / 2], axis=0)
    numbers = np.concatenate([expected, np.stack([median, *(end for ends in bands.values() for end in ends)])])
    infinite = np.isinf(model_std) | np.isinf(outcome_std) | ~np.isfinite(numbers).all(axis=0)
    found: list[Outlook | None] = []
    for row in range(len(mean)):
        if infinite[row].any():
            found.append(None)
            continue
        support = _support_of(prediction, row)
        said = () if support is None else cautions(support)
        found.append(
            Outlook(
                mean=_numbers(mean[row]),
                median=_numbers(median[row]),
                bands=tuple(_band(level, lower[row], upper[row]) for level, (lower, upper) in bands.items()),
                expectation=None if np.isnan(model_std[row]).any() else _band(EXPECTATION, *expectation[:, row]),
                model_uncertainty=_or_none(model_std[row]),
                outcome_uncertainty=_or_none(outcome_std[row]),
                behind=None if support is None else _behind(support, said, number),
                defer=bool(said),
            )
        )
    return found


def _band(level: float, lower: np.ndarray, upper: np.ndarray) -> Band:
    return Band(level=level, lower=_numbers(lower), upper=_numbers(upper))


def _behind(support: Support, said: tuple[str, ...], horizons: int) -> Behind:
    rank = support.spread_rank[0]
    return Behind(
        windows=tuple(support.windows[0, :horizons].tolist()),
        never_observed=bool(support.never_observed.any()),
        surer_than=None if np.isnan(rank).all() else 1.0 - float(np.nanmax(rank)),
        cautions=said,
    )


def cautions(support: Support) -> tuple[str, ...]:
    """Why one should not lean on a forecast about one patient, in plain words."""
    said = []
    if support.never_observed.any():
        said.append("Never observed: no training patient had a comparable plan after a comparable history.")
    if support.dose_outside.any():
        said.append("A dose or rate lies outside what training patients received.")
    if support.more_than_ever.any():
        said.append("More is given than to any training patient in such a time.")
    if support.longer_unseen.any():
        said.append("The outcome has not been seen for longer than in training.")
    if np.nanmax(support.spread_rank, initial=0.0) >= UNSURE:
        said.append(f"The model is less sure here than about {UNSURE:.0%} of validation patients.")
    return tuple(said)


def _numbers(values: np.ndarray) -> tuple[float, ...]:
    return tuple(values.astype(np.float64).tolist())


def _or_none(values: np.ndarray) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else float(value) for value in values)
