"""Treatments and outcomes simulated on the covariates of real patients, so that every other future is known.

As in the paper's supplement on semi-synthetic data. With X the covariates, filled forward, and w_h = 1 / (h + 1):

    y_0 = 1,   y_{H+1} = − Σ_{h≤H} w_h tanh(½ Σ_{k≤2} β_k X_{H−h}(k)) y_h + ε               for H = 0 … 4
    a_j ~ Bernoulli(sigmoid(tanh(mean_k β_k X_{j−1}(k)) + tanh(y_{j−1}) + ε_a))              from then on
    y_{j+1} = − Σ_{h≤4} w_h tanh(½ Σ_{k≤2} β_k X_{j−h}(k)) y_j + cos(y_j a_j) + ε

As printed the gain can reach Σ w_h = 2.28 and outcomes can explode; `gain="bounded"` scales the w_h to a sum of 0.9.
See docs/explanation/simulated-worlds.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import polars as pl
from jaxtyping import Float64, Int64
from scipy.special import expit as sigmoid

from counterpath.cohort import Cohort, CohortError, Schema, Treatment, TreatmentEvents, Variable
from counterpath.cohort.merging import merge_near_records
from counterpath.cohort.records import Observations, offsets_from
from counterpath.cohort.schema import Amounts
from counterpath.simulators.semi_synthetic_truth import (
    BURN_IN,
    ROUNDING,
    SemiSyntheticTruth,
    next_of_burn_in,
    next_outcome,
)

Gain = Literal["bounded", "literal"]
OUTCOME, TREATMENT = "outcome", "treatment"
DRIVERS = 2  # covariates that the outcome follows; treatment follows all
LARGEST_SUM = 0.9  # of the bounded weights
CHANCE_NOISE_STD = 0.03


@dataclass(frozen=True)
class SemiSynthetic:
    """A study: `cohort` is what was recorded, `truth` everything else."""

    cohort: Cohort
    truth: SemiSyntheticTruth


def simulate_semi_synthetic(
    cohort: Cohort,
    *,
    covariates: Sequence[str] | None = None,
    seed: int = 0,
    gain: Gain = "bounded",
    noise_std: float = 0.01,
    shortest: int = 30,
    longest: int = 50,
    merge_within: float = 0.02,
) -> SemiSynthetic:
    """Patients with their own covariates, at their own times, and simulated treatments and outcomes.

    A step is one unit of the cohort's time. Equations use covariates as z-scores, filled forward, and the mean before
    the first value; records keep what was really measured. So part of what treatment follows is hidden from a model:
    values that were filled in, and outcomes at steps without a record.

    Args:
        cohort: Whose covariates are used; its own outcomes and treatments are not.
        covariates: Of those that change, which: the outcome follows the first two. Default: all numbers. Static ones
            all count.
        seed: Of everything random; with another `noise_std` coefficients and random numbers stay, and treatments and
            records change only as far as they follow the outcome.
        gain: `bounded`, or `literal` as in the paper, whose outcomes can explode.
        noise_std: Of the outcome, at each step.
        shortest: Patients whose covariates end before so many steps are left out.
        longest: Of each patient, at most so many steps.
        merge_within: Covariates recorded so near a whole step, in steps, are moved onto it, where outcomes are: no
            patient has two records at almost the same time. Give what the cohort was read with.
    """
    if gain not in get_args(Gain):
        raise CohortError(f"There is no gain {gain!r}. Choose one of {', '.join(get_args(Gain))}.")
    if not 0 <= merge_within < 0.5:
        raise CohortError(f"merge_within={merge_within} is no part of a step. Use 0 or more, and less than 0.5.")
    cohort, chosen = _on_whole_steps(cohort, max(merge_within, ROUNDING)), _chosen(cohort, covariates)
    kept, steps = _lengths(cohort, chosen, shortest, longest)
    cohort = cohort.take(kept)
    streams = np.random.default_rng(seed).spawn(4)
    filled = _filled(cohort, chosen, longest)
    beta = streams[0].standard_normal(filled.shape[2])
    truth = _simulate(filled, beta, _weights(gain), noise_std, cohort.patients, streams)
    ended = np.arange(longest) >= steps[:, None]
    truth = _until_the_end(truth, ended)
    return SemiSynthetic(_recorded(cohort, chosen, truth, steps), truth)


def _on_whole_steps(cohort: Cohort, within: float) -> Cohort:
    """With records so near a whole step moved onto it, where those of a patient become one."""
    times, steps = cohort.records.times, np.rint(cohort.records.times)
    moved = replace(cohort.records, times=np.where(np.abs(times - steps) <= within, steps, times))
    return replace(cohort, records=merge_near_records(moved, cohort.schema.variables, 0.0, "mean"))


def _chosen(cohort: Cohort, names: Sequence[str] | None) -> list[int]:
    """Columns of the records."""
    variables = cohort.schema.variables
    numbers = [v.name for v in cohort.schema.covariates if v.kind == "numeric"]
    asked = numbers if names is None else list(names)
    wrong = [name for name in asked if name not in numbers]
    if wrong:
        raise CohortError(f"There is no covariate {wrong[0]!r} with numbers. There is {', '.join(map(repr, numbers))}.")
    if len(set(asked)) < len(asked):
        raise CohortError(f"A covariate is named twice among {', '.join(map(repr, asked))}. Name each once.")
    for name in (OUTCOME, TREATMENT):
        if name in asked or name in [v.name for v in cohort.schema.static]:
            raise CohortError(
                f"A covariate is called {name!r}, as what is simulated is. Read its table with another name for it."
            )
    if len(asked) < DRIVERS:
        raise CohortError(f"The outcome follows {DRIVERS} covariates over time, and there is {len(asked)}.")
    return [next(i for i, v in enumerate(variables) if v.name == name) for name in asked]


def _lengths(
    cohort: Cohort, chosen: list[int], shortest: int, longest: int
) -> tuple[Int64[np.ndarray, " kept"], Int64[np.ndarray, " kept"]]:
    """Who has enough steps until the last covariate, and how many each has."""
    if not BURN_IN + 1 < shortest <= longest:
        raise CohortError(f"shortest={shortest} must be more than {BURN_IN + 1} and at most longest={longest}.")
    seen = ~np.isnan(cohort.records.values[:, chosen]).all(axis=1)
    last = np.full(len(cohort), -1.0)
    np.maximum.at(last, cohort.records.patient_of_row[seen], cohort.records.times[seen])
    steps = np.floor(last).astype(np.int64) + 1
    kept = np.flatnonzero(steps >= shortest)
    if not len(kept):
        raise CohortError(f"Nobody has covariates over {shortest} steps; the longest are {steps.max(initial=0)}.")
    return kept, np.minimum(steps[kept], longest)


def _filled(cohort: Cohort, chosen: list[int], steps: int) -> Float64[np.ndarray, "patients steps covariates"]:
    """z-scores: of each step the last value so far, the mean before the first; then the static ones."""
    records = cohort.records
    z = _z_scores(records.values[:, chosen])
    found = np.zeros((len(cohort), steps, len(chosen)))
    for patient in range(len(cohort)):
        own = slice(records.offsets[patient], records.offsets[patient + 1])
        for k in range(len(chosen)):
            there = ~np.isnan(z[own, k])
            times, values = records.times[own][there], z[own, k][there]
            last = np.searchsorted(times, np.arange(steps), side="right") - 1
            if len(values):
                found[patient, :, k] = np.where(last >= 0, values[np.maximum(last, 0)], 0.0)
    static = np.nan_to_num(_z_scores(cohort.static_values))
    return np.concatenate([found, np.repeat(static[:, None], steps, axis=1)], axis=2)


def _z_scores(values: np.ndarray) -> np.ndarray:
    there = ~np.isnan(values)
    number = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there, values, 0.0).sum(axis=0) / number
    std = np.sqrt((np.where(there, values - mean, 0.0) ** 2).sum(axis=0) / number)
    return (values - mean) / np.where(std > 0, std, 1.0)


def _weights(gain: Gain) -> tuple[float, ...]:
    weights = 1 / (np.arange(BURN_IN) + 1)
    return tuple((weights if gain == "literal" else LARGEST_SUM * weights / weights.sum()).tolist())


def _simulate(
    filled: np.ndarray,
    beta: np.ndarray,
    weights: tuple[float, ...],
    noise_std: float,
    ids: pl.Series,
    streams: Sequence[np.random.Generator],
) -> SemiSyntheticTruth:
    patients, steps, _ = filled.shape
    pull = np.tanh(0.5 * filled[:, :, :DRIVERS] @ beta[:DRIVERS])
    noise = noise_std * streams[1].standard_normal((patients, steps))
    lean = np.tanh((filled @ beta) / len(beta))
    wobble = CHANCE_NOISE_STD * streams[2].standard_normal((patients, steps))
    treatment_draws = streams[2].random((patients, steps))
    y = np.ones((patients, steps))
    gain, chance = np.full((patients, steps), np.nan), np.full((patients, steps), np.nan)
    potential = np.full((patients, steps, 2), np.nan)
    given = np.zeros((patients, steps), bool)
    for j in range(min(BURN_IN, steps - 1)):
        y[:, j + 1] = next_of_burn_in(y[:, : j + 1], pull, weights) + noise[:, j]
    for j in range(BURN_IN, steps):
        gain[:, j] = pull[:, j - BURN_IN + 1 : j + 1][:, ::-1] @ np.array(weights)
        chance[:, j] = sigmoid(lean[:, j - 1] + np.tanh(y[:, j - 1]) + wobble[:, j])
        given[:, j] = treatment_draws[:, j] < chance[:, j]
        for choice in (0, 1):
            potential[:, j, choice] = next_outcome(y[:, j], gain[:, j], np.full(patients, choice)) + noise[:, j]
        if j + 1 < steps:
            y[:, j + 1] = np.where(given[:, j], potential[:, j, 1], potential[:, j, 0])
    observed = streams[3].random((patients, steps)) < sigmoid(y)
    observed[:, 0] = True  # everybody has an outcome
    return SemiSyntheticTruth(ids, noise_std, y, potential, given, chance, gain, pull, weights, noise, observed)


def _until_the_end(truth: SemiSyntheticTruth, ended: np.ndarray) -> SemiSyntheticTruth:
    """Nothing after a patient's last step, which is that of the last covariate."""
    final = ended | np.roll(ended, -1, axis=1)
    final[:, -1] = True  # a treatment at the last step would have no outcome
    return replace(
        truth,
        outcomes_of_steps=np.where(ended, np.nan, truth.outcomes_of_steps),
        potential=np.where(final[:, :, None], np.nan, truth.potential),
        given=truth.given & ~final,
        chance=np.where(final, np.nan, truth.chance),
        gain=np.where(final, np.nan, truth.gain),
        pull=np.where(ended, np.nan, truth.pull),
        observed=truth.observed & ~ended,
    )


def _recorded(cohort: Cohort, chosen: list[int], truth: SemiSyntheticTruth, steps: np.ndarray) -> Cohort:
    """Covariates at their own times, outcomes where they were seen, treatments."""
    ends = (steps - 1).astype(np.float64)
    records = cohort.records
    whose, at = np.nonzero(truth.observed)
    outcomes = pl.DataFrame(
        {"patient": whose, "time": at.astype(np.float64), OUTCOME: truth.outcomes_of_steps[whose, at]}
    )
    names = [f"covariate {k}" for k in range(len(chosen))]
    measured = pl.DataFrame(
        {"patient": records.patient_of_row, "time": records.times}
        | {name: records.values[:, column] for name, column in zip(names, chosen, strict=True)}
    ).filter(
        ~pl.all_horizontal(pl.col(names).is_nan())
        & pl.Series((records.times >= 0) & (records.times <= ends[records.patient_of_row]))
    )
    rows = outcomes.join(measured, on=["patient", "time"], how="full", coalesce=True).sort("patient", "time")
    values = rows.select(pl.col([OUTCOME, *names]).fill_null(np.nan)).to_numpy()
    who, when = np.nonzero(truth.given)
    schema = Schema(
        time_unit=cohort.schema.time_unit,
        outcomes=(Variable(name=OUTCOME),),
        covariates=tuple(cohort.schema.variables[column] for column in chosen),
        static=cohort.schema.static,
        treatments=(Treatment(name=TREATMENT, dose=Amounts(usual=1.0, lowest=1.0, highest=1.0)),),
        stay_separator=cohort.schema.stay_separator,
        patient_column=cohort.schema.patient_column,
        time_column=cohort.schema.time_column,
    )
    offsets = offsets_from(rows["patient"].to_numpy(), len(cohort))
    return replace(
        cohort,
        schema=schema,
        follow_up_end=ends,
        records=Observations(offsets, rows["time"].to_numpy(), np.ascontiguousarray(values)),
        events=TreatmentEvents.from_rows(
            who,
            np.zeros(len(who), np.int64),
            when.astype(np.float64),
            np.full(len(who), np.nan),
            np.ones(len(who)),
            patients=len(cohort),
        ),
        repairs=(),
    )
