"""The tumour growth study: a cohort that a model may see, and the truth that it may not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from jaxtyping import Float64, Int64

from counterpath.cohort import Cohort, CohortError, Treatment
from counterpath.cohort.declared import Columns, Declared, DeclaredVariable, Repairs
from counterpath.cohort.schema import Amounts
from counterpath.cohort.tables import Tables
from counterpath.simulators.tumor_assignment import (
    ARMS,
    ASSIGNMENTS,
    DIAMETER_SCALE_CM,
    TREATMENTS,
    Assignment,
    arm_schedule,
    chance_of_treatment,
    sigmoid,
)
from counterpath.simulators.tumor_dynamics import CHEMO_DOSE, RADIO_DOSE_GY, decay, grow
from counterpath.simulators.tumor_patients import SUBGROUPS, TumorPatients, diameter_cm, draw_patients
from counterpath.simulators.tumor_truth import TumorSettings, TumorTruth

OUTCOME = "tumor_volume"
CONTINUOUS_STEP_DAYS = 0.05
WINDOW_DAYS = 15  # of the mean diameter that visits and treatments follow


@dataclass(frozen=True)
class TumorSimulation:
    """A simulated study: `cohort` is what was recorded, `truth` everything else."""

    cohort: Cohort
    truth: TumorTruth

    def other_arm(self, *, seed: int) -> TumorSimulation:
        """The literature's counterfactual: the same patients in the other arm from day 0, with new noise and visits."""
        truth = self.truth
        if truth.settings.assignment != "arms":
            raise CohortError(f"Patients of a {truth.settings.assignment!r} study have no other arm.")
        return _simulate(truth.patients, truth.settings, _Streams.of(seed), arm=1 - truth.arm)


def load_tumor_growth(
    patients: int = 1_000,
    *,
    seed: int = 0,
    assignment: Assignment = "randomised",
    continuous: bool = False,
    noise_std: float = 0.01,
    observation_gamma: float = 1.0,
) -> Cohort:
    """A simulated cohort: 60 days of tumour volumes at irregular visits, with chemo- and radiotherapy.

    Args:
        patients: How many.
        seed: The same seed gives the same cohort.
        assignment: `randomised` (every plan has support), `arms` (the paper's two), `confounded` (treatment follows
            the observed size) or `hidden confounding` (treatment follows the true size).
        continuous: Doses and visits at any time of the day, instead of once a day.
        noise_std: Of the growth, per day.
        observation_gamma: How strongly visits follow size.
    """
    return simulate_tumor_growth(
        patients,
        seed=seed,
        assignment=assignment,
        continuous=continuous,
        noise_std=noise_std,
        observation_gamma=observation_gamma,
    ).cohort


def simulate_tumor_growth(
    patients: int = 1_000,
    *,
    seed: int = 0,
    assignment: Assignment = "randomised",
    continuous: bool = False,
    noise_std: float = 0.01,
    observation_gamma: float = 1.0,
    treatment_gamma: float = 5.0,
    step_days: float | None = None,
    seeds: dict[str, int] | None = None,
) -> TumorSimulation:
    """The same with the truth: latent volumes, parameters, counterfactuals, chances of visits.

    Args:
        patients: How many.
        seed: Of everything that `seeds` does not name.
        assignment: As for `load_tumor_growth`.
        continuous: As for `load_tumor_growth`.
        noise_std: Of the growth, per day.
        observation_gamma: How strongly visits follow size.
        treatment_gamma: How strongly treatment follows size, where it does.
        step_days: Of the continuous variant.
        seeds: Seeds of their own for `patients`, `noise`, `visits` or `treatment`: change one, and the rest stays.
    """
    if assignment not in ASSIGNMENTS:
        raise CohortError(f"There is no assignment {assignment!r}. Choose one of {', '.join(ASSIGNMENTS)}.")
    if patients < 1:
        raise CohortError(f"patients={patients} is not a number of patients.")
    settings = TumorSettings(
        assignment=assignment,
        continuous=continuous,
        step_days=(step_days or CONTINUOUS_STEP_DAYS) if continuous else 1.0,
        noise_std=noise_std,
        observation_gamma=observation_gamma,
        treatment_gamma=treatment_gamma,
    )
    streams = _Streams.of(seed, seeds)
    people = draw_patients(patients, streams.patients)
    arm = streams.treatment.integers(0, len(ARMS), patients) if assignment == "arms" else np.full(patients, -1)
    return _simulate(people, settings, streams, arm=arm)


@dataclass(frozen=True)
class _Streams:
    """Random numbers for different things come from different streams."""

    patients: np.random.Generator
    noise: np.random.Generator
    visits: np.random.Generator
    treatment: np.random.Generator

    @classmethod
    def of(cls, seed: int, seeds: dict[str, int] | None = None) -> _Streams:
        names = ("patients", "noise", "visits", "treatment")
        for name in seeds or {}:
            if name not in names:
                raise CohortError(f"There is no seed for {name!r}. There is {', '.join(names)}.")
        own = {name: (seeds or {}).get(name, seed) for name in names}
        return cls(*(np.random.default_rng([own[name], number]) for number, name in enumerate(names)))


def _simulate(
    people: TumorPatients, settings: TumorSettings, streams: _Streams, *, arm: Int64[np.ndarray, " patients"]
) -> TumorSimulation:
    number, steps, h = len(people), settings.steps, settings.step_days
    noise = streams.noise.standard_normal((number, steps))
    gone = streams.noise.random((number, steps))
    visit_draws = streams.visits.random((number, steps))
    given = np.zeros((number, steps, len(TREATMENTS)), bool)
    treatment_draws = None
    if settings.assignment == "arms":
        given = arm_schedule(arm, steps, h, streams.treatment)
    else:
        treatment_draws = streams.treatment.random((number, steps, len(TREATMENTS)))

    volumes = np.empty((number, steps))
    observed = np.zeros((number, steps), bool)
    visit_chance = np.empty((number, steps))
    volume, concentration = people.initial_volume_cm3, np.zeros(number)
    latent, seen = _RollingMean(number, h), _RollingMean(number, h)
    for step in range(steps):
        volumes[:, step] = volume
        diameter = diameter_cm(volume)
        latent.add(diameter, np.ones(number, bool))
        chance = sigmoid(settings.observation_gamma * (latent.mean() / DIAMETER_SCALE_CM - 0.5))
        visit_chance[:, step] = chance
        per_step = chance if h == 1.0 else -np.expm1(h * np.log1p(-chance))
        observed[:, step] = visit_draws[:, step] < per_step if step else True
        seen.add(diameter, observed[:, step])
        if treatment_draws is not None:
            basis = latent if settings.assignment == "hidden confounding" else seen
            wanted = chance_of_treatment(settings.assignment, step * h, h, basis.mean(), settings.treatment_gamma)
            if step < steps - 1:  # nothing follows the end
                given[:, step] = treatment_draws[:, step] < wanted[:, None]
        concentration = concentration + CHEMO_DOSE * given[:, step, 0]
        volume = grow(
            volume,
            patients=people,
            concentration=concentration,
            radio_gy=RADIO_DOSE_GY * given[:, step, 1],
            noise=settings.noise_std * np.sqrt(h) * noise[:, step],
            gone=gone[:, step],
            step_days=h,
            daily=not settings.continuous,
        )
        concentration = decay(concentration, h)
    ids = pl.Series(np.arange(number, dtype=np.int64))
    truth = TumorTruth(settings, ids, people, volumes, given, observed, visit_chance, arm, noise, gone)
    return TumorSimulation(_cohort(truth), truth)


class _RollingMean:
    """Mean of what was seen in the last 15 days; of the last thing seen, where that is longer ago."""

    def __init__(self, number: int, step_days: float):
        self.length = round(WINDOW_DAYS / step_days)
        self.values: list[np.ndarray] = []
        self.total, self.count, self.last = np.zeros(number), np.zeros(number), np.zeros(number)

    def add(self, value: np.ndarray, present: np.ndarray) -> None:
        kept = np.where(present, value, np.nan)
        self.values.append(kept)
        self.last = np.where(present, value, self.last)
        self.total += np.where(present, value, 0.0)
        self.count += present
        if len(self.values) > self.length:
            old = self.values.pop(0)
            self.total -= np.nan_to_num(old)
            self.count -= ~np.isnan(old)

    def mean(self) -> Float64[np.ndarray, " patients"]:
        return np.where(self.count > 0, self.total / np.maximum(self.count, 1), self.last)


def _cohort(truth: TumorTruth) -> Cohort:
    """What was recorded."""
    patient, step = np.nonzero(truth.observed)
    times = truth.times_days
    who, when, what = np.nonzero(truth.given)
    amounts = np.array([CHEMO_DOSE, RADIO_DOSE_GY])
    settings = truth.settings
    tables = Tables(
        pl.DataFrame({"patient": patient, "time": times[step], OUTCOME: truth.volumes_cm3[patient, step]}),
        pl.DataFrame(
            {
                "patient": who,
                "time": times[when],
                "treatment": pl.Series(TREATMENTS).gather(what),
                "dose": amounts[what],
            }
        ),
        pl.DataFrame(
            {
                "patient": truth.ids,
                "subgroup": pl.Series(SUBGROUPS).gather(truth.patients.subgroup),
                "study_end": np.full(len(truth.ids), float(settings.days - 1)),
            }
        ),
    )
    # Everything is declared, so that a small study in which nobody had radiotherapy still knows of it.
    declared = Declared(
        time_unit="day",
        outcomes=(DeclaredVariable(name=OUTCOME, unit="cm³", lower=0.0),),
        covariates=(),
        static=(DeclaredVariable(name="subgroup", kind="categorical", levels=SUBGROUPS),),
        treatments=tuple(
            Treatment(name=name, unit=unit, dose=Amounts(usual=dose, lowest=dose, highest=dose))
            for name, unit, dose in zip(TREATMENTS, (None, "Gy"), amounts.tolist(), strict=True)
        ),
        randomised=settings.assignment in ("arms", "randomised"),
        follow_up_end="study_end",
        time_zero="as given",
    )
    return Cohort.build(tables, declared, Columns(), Repairs())
