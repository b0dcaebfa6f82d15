"""What the explorer is asked, and what it answers: the words of its HTTP API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from counterpath.cohort import Plan, Schema
from counterpath.cohort.plan_parts import KeptRunning, PlannedDose, PlannedInfusion
from counterpath.cohort.schema import Strict
from counterpath.explorer.limits import MOST_EVENTS, MOST_HORIZONS, MOST_KEYS, MOST_RECORDS
from counterpath.predictive import Direction

DRAWS = 100  # of the weights, where a question does not say how many
MANY_DRAWS = 400
HOW_MANY = (
    "Draws of what the model does not know: 100, or 400 for finer probabilities in a few times the time. "
    "Programs are compiled for these numbers when the server starts, so that no question waits for a compiler."
)
Value = float | Annotated[str, Field(max_length=1_000)] | None  # a bound lets no broken character through
Name = Annotated[str, Field(min_length=1, max_length=200)]
MOST_TIME = 1e9  # from a patient's time zero, whatever the unit
Time = Annotated[float, Field(ge=-MOST_TIME, le=MOST_TIME)]
Horizons = Annotated[
    tuple[Annotated[float, Field(gt=0)], ...], Field(fail_fast=True, min_length=1, max_length=MOST_HORIZONS)
]


class Measured(Strict):
    """What was measured of a patient at one time: values by variable, null or absent where there was none."""

    time: Time
    values: Annotated[dict[Name, Value], Field(min_length=1, max_length=MOST_KEYS)]


class Given(Strict):
    """A dose, or a rate from `start` to `stop`; without a stop it is still running."""

    treatment: Name
    start: Time
    dose: Annotated[float, Field(gt=0)] | None = None
    rate: Annotated[float, Field(gt=0)] | None = None
    stop: Time | None = None

    @model_validator(mode="after")
    def _one_amount(self) -> Given:
        if (self.dose is None) == (self.rate is None):
            raise ValueError("give a dose, or a rate with its start and stop")
        if self.dose is not None and self.stop is not None:
            raise ValueError("a single dose has no stop")
        return self


class History(Strict):
    """A patient's record, as it is known at a time."""

    observations: Annotated[tuple[Measured, ...], Field(min_length=1)]
    treatments: tuple[Given, ...] = ()
    static: Annotated[dict[Name, Value], Field(max_length=MOST_KEYS, default_factory=dict)]


class PostedHistory(History):
    """A patient's record, as it is known now. It is used for one answer and not kept."""

    observations: Annotated[tuple[Measured, ...], Field(fail_fast=True, min_length=1, max_length=MOST_RECORDS)]
    treatments: Annotated[tuple[Given, ...], Field(fail_fast=True, max_length=MOST_RECORDS)] = ()


class PostedPlan(Plan):
    """What will be given from now on, in elapsed time: 0 is now. An empty plan ends what is running, too."""

    doses: Annotated[tuple[PlannedDose, ...], Field(fail_fast=True, max_length=MOST_EVENTS)] = ()
    infusions: Annotated[tuple[PlannedInfusion, ...], Field(fail_fast=True, max_length=MOST_EVENTS)] = ()
    keeps_running: Annotated[tuple[KeptRunning, ...], Field(fail_fast=True, max_length=MOST_EVENTS)] = ()


class Tables(Strict):
    """A patient's record as CSV text, with the columns of the tables that the model learned from."""

    observations: Annotated[str, Field(min_length=1)]
    treatments: str = ""
    static: str = ""


class Asked(Strict):
    """About whom, and how.

    Attributes:
        patient: Of the loaded cohort; or
        history: A record of one's own.
        at: When the question is asked, in time since the patient's zero; default: at the end of the record.
        horizons: Elapsed times; default: even steps up to the longest.
        draws: Of what the model does not know; one of two numbers, for which programs are compiled beforehand.
        outcome: Which; default: the first.
    """

    patient: Name | None = None
    history: PostedHistory | None = None
    at: Time | None = None
    horizons: Horizons | None = None
    draws: Annotated[Literal[100, 400], Field(description=HOW_MANY)] = DRAWS
    outcome: Name | None = None

    @model_validator(mode="after")
    def _one_patient(self) -> Asked:
        if (self.patient is None) == (self.history is None):
            raise ValueError("say either which patient, or a history")
        return self


class PredictionAsked(Asked):
    """What may happen under a plan."""

    plan: PostedPlan


class EffectAsked(Asked):
    """What a plan changes against another."""

    plan: PostedPlan
    versus: PostedPlan = PostedPlan()
    better: Direction | None = None
    margin: Annotated[float, Field(ge=0)] = 0.0


class ComparisonAsked(Asked):
    """Several plans side by side.

    Attributes:
        plans: By name.
        versus: The plan that the others are compared with; default: the first.
        better: Whether lower or higher outcomes are.
    """

    plans: Annotated[dict[Name, PostedPlan], Field(min_length=1)]
    versus: Name | None = None
    better: Direction | None = None


class Band(Strict):
    """The central interval that holds the outcome with this probability."""

    level: float
    lower: tuple[float, ...]
    upper: tuple[float, ...]


class Behind(Strict):
    """How much of the training stands behind a forecast.

    Attributes:
        windows: At each horizon, training windows with a comparable plan after a comparable history.
        never_observed: Whether there are none at some horizon.
        surer_than: Share of validation windows about which the model is less sure; null where it cannot tell.
        cautions: Why one should not lean on it, in plain words.
    """

    windows: tuple[int, ...]
    never_observed: bool
    surer_than: float | None
    cautions: tuple[str, ...]


class Outlook(Strict):
    """What may happen under one plan, at each horizon.

    Attributes:
        mean: The expected outcome.
        median: Half of the probability lies below.
        bands: Of the outcome: 50, 80 and 95%, pointwise.
        expectation: Where its expectation lies with 95%, as far as the model knows; null where it cannot tell.
        model_uncertainty: Standard deviation of the mean over what the model does not know; null where it cannot tell.
        outcome_uncertainty: Standard deviation of the outcome about its mean; likewise.
        behind: The support of the forecast; null where the model learned from nobody.
        defer: Whether to leave this patient to somebody else.
    """

    mean: tuple[float, ...]
    median: tuple[float, ...]
    bands: tuple[Band, ...]
    expectation: Band | None
    model_uncertainty: tuple[float | None, ...]
    outcome_uncertainty: tuple[float | None, ...]
    behind: Behind | None
    defer: bool


class Change(Strict):
    """E[Y(plan) − Y(versus) | history]; its interval is what the model does not know."""

    mean: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    probability_of_benefit: tuple[float, ...] | None
    cautions: tuple[str, ...]


class Answer(Strict):
    """What all answers have in common.

    Attributes:
        at: When the question was asked.
        elapsed: The horizons.
        outcome: Which.
        warnings: What the library had to say about the plans.
    """

    at: float
    elapsed: tuple[float, ...]
    outcome: str
    warnings: tuple[str, ...]


class PredictionAnswer(Answer):
    """Of one plan."""

    outlook: Outlook


class EffectAnswer(Answer):
    """Of a plan against another."""

    change: Change
    label: str
    assumptions: str


class ComparisonAnswer(Answer):
    """Of several plans.

    Attributes:
        outlooks: By plan.
        versus: The plan that the others are compared with.
        changes: What each of the others changes.
        probability_best: By plan, at each horizon, where `better` was said.
    """

    outlooks: dict[str, Outlook]
    versus: str
    changes: dict[str, Change]
    probability_best: dict[str, tuple[float, ...]] | None
    label: str
    assumptions: str


class HistoryAnswer(Strict):
    """A record as it was read from tables.

    Attributes:
        history: To be sent with a question.
        at: The end of the record.
        warnings: What was left out or changed, and what to know about it.
    """

    history: History
    at: float
    warnings: tuple[str, ...]


class RecordAnswer(Strict):
    """What is known of a patient of the cohort at a time, and what came after.

    Attributes:
        first: The time of the first record.
        last: The end of the record.
        history: Known at that time.
        later: Outcomes after it, up to the longest horizon.
        followed: What was really given from then on, in elapsed time.
    """

    patient: str
    at: float
    first: float
    last: float
    history: History
    later: tuple[Measured, ...]
    followed: Plan


class PatientLine(Strict):
    """One patient of the cohort, with the width of the 95% interval at the longest horizon if nothing changes."""

    patient: str
    records: int
    last: float
    width: float | None
    static: dict[str, Value]


class PatientsAnswer(Strict):
    """Some of the cohort's patients."""

    total: int
    page: int
    patients: tuple[PatientLine, ...]


class CardAnswer(Strict):
    """What the model is, what it learned from, and how far to trust it.

    Attributes:
        learned: Outcomes, covariates and treatments that it knows.
        outcomes: Names of those that it predicts.
        calibration: In plain words, on the loaded cohort.
        curve: Even horizons that make a smooth curve.
    """

    model: str
    settings: str
    learned: Schema
    outcomes: tuple[str, ...]
    max_horizon: float
    horizons: tuple[float, ...]
    curve: tuple[float, ...]
    training: dict[str, float | int | str]
    calibration: str | None
    patients: int
    assumptions: str
    label: str
    notice: str


class HealthAnswer(Strict):
    """Alive."""

    status: Literal["alive"]


class ReadinessAnswer(Strict):
    """Ready for questions."""

    status: Literal["ready"]
