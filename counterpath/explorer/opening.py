"""What is made once, when the server starts: compiled programs, a look over the patients, a verdict on the model."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import polars as pl

from counterpath.cohort import Cohort, CohortError, Plan
from counterpath.cohort.findings import PlanWarning
from counterpath.estimators import DeepEnsemble, Estimator
from counterpath.explorer.described import some_value
from counterpath.explorer.messages import DRAWS, CardAnswer, PatientLine
from counterpath.explorer.patients import there, with_unmeasured
from counterpath.explorer.problems import ProblemError
from counterpath.explorer.questions import SIZES, Question, tell
from counterpath.predictive.effect import ASSUMPTIONS, NOT_RANDOMISED

CURVE = 15  # horizons of a curve: a multiple of the five even ones, so that these are among them
LOOKED_OVER = 2_000  # patients whose forecast is made beforehand
JUDGED_ON = 300
log = logging.getLogger("counterpath.explorer")
NOTICE = "Not a medical device: for research only. No forecast of it may guide the care of a patient."


class Opening:
    """Of one server.

    Attributes:
        schema: That the model learned with.
        together: Forecasts that are made at once.
        card: What the page says of the model.
        lines: The patients, in the cohort's order.
        is_ready: Whether card and lines are there.
    """

    card: CardAnswer

    def __init__(self, model: Estimator, cohort: Cohort | None, together: int):
        if model.schema is None:
            raise CohortError("This model has not been fitted.")
        self.model = model
        self.cohort = cohort
        self.schema = model.schema
        self.together = together
        self.lines: list[PatientLine] = []
        self.is_ready = False
        self.failed = False
        if cohort is not None:
            self._ask_once()  # so that patients of another kind are refused here and now

    def prepare(self) -> None:
        """Some seconds of work, after which nothing has to be compiled for what the page asks, whoever asks with it."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PlanWarning)
                self.lines = [] if self.cohort is None else self._look_over(self.cohort)
                self.card = self._card()
                self._warm()
            self.is_ready = True
        except Exception as error:
            self.failed = True
            log.error("%s while the model was made ready", type(error).__name__)  # its message may hold values
            raise

    def require_ready(self) -> None:
        """Or say that it takes a moment."""
        if self.failed:
            raise ProblemError(503, "Failed", "The model could not be made ready. Look at what the server has written.")
        if not self.is_ready:
            raise ProblemError(503, "Not ready", "The model is being made ready. Ask again in a moment.")

    def _ask_once(self) -> None:
        tell(self.model, [Question(self._anybody(), {"": Plan.continued()}, tuple(self.model.even_horizons()), DRAWS)])

    def _look_over(self, cohort: Cohort) -> list[PatientLine]:
        """Who there is, and how sure the model is of each if nothing changes."""
        some = cohort.take(np.arange(min(len(cohort), LOOKED_OVER)))
        asked = {"horizons": [self.model.max_horizon], "draws": 32, "keep": "summary", "progress": False}
        prediction = self.model.predict(some.until(some.history_end), Plan.continued(), **asked)
        prediction = prediction[prediction.outcomes[0].name]
        lower, upper = prediction.interval(0.95)
        widths = [*(upper - lower)[:, 0].tolist(), *[None] * (len(cohort) - len(some))]
        fixed = [v.name for v in cohort.schema.static]
        static = cohort.static.select(fixed).to_dicts() if fixed else [{}] * len(cohort)
        ends, records = cohort.history_end.tolist(), cohort.records.per_patient.tolist()
        return [
            PatientLine(patient=str(name), records=records[i], last=ends[i], width=widths[i], static=there(static[i]))
            for i, name in enumerate(cohort.patients)
        ]

    def _warm(self) -> None:
        """Ask whatever can be asked, as many at once as there can be: shapes are padded to powers of two."""
        history = self._anybody()
        for size in reversed(SIZES):  # those of the page last, whose draws are then at hand
            horizons = tuple(self.model.even_horizons(size.horizons))
            question = Question(history, {"": Plan.continued()}, horizons, size.draws)
            number = 1
            while number <= min(self.together, size.together):
                tell(self.model, [question] * number)
                number *= 2

    def _anybody(self) -> Cohort:
        """A patient; where none was loaded, one of whom next to nothing is known."""
        if self.cohort is not None:
            first = self.cohort.take(np.array([0]))
            return first.until(first.history_end)
        schema = self.schema
        key = {schema.patient_column: ["anybody"]}
        usual = {variable.name: [some_value(variable)] for variable in schema.outcomes}
        observations = pl.DataFrame(key | {schema.time_column: [0.0]} | usual)
        static = pl.DataFrame(key | {variable.name: [None] for variable in schema.static})
        everything = with_unmeasured(observations, schema)
        return Cohort.from_tables(everything, None, static if schema.static else None, like=schema)

    def _card(self) -> CardAnswer:
        model, verdict = self.model, None
        if self.cohort is not None:
            some = self.cohort.take(np.linspace(0, len(self.cohort) - 1, min(len(self.cohort), JUDGED_ON)).astype(int))
            try:
                verdict = model.evaluate(some, progress=False).verdict
            except CohortError as error:  # such as: no outcome follows
                verdict = str(error)
        randomised = self.schema.randomised
        return CardAnswer(
            model=type(model).__name__,
            settings=repr(model),
            learned=self.schema,
            outcomes=tuple(outcome.name for outcome in self.schema.outcomes[: model.outcomes_predicted]),
            max_horizon=model.max_horizon,
            horizons=tuple(model.even_horizons()),
            curve=tuple(model.even_horizons(CURVE)),
            training=_training(model),
            calibration=verdict,
            patients=0 if self.cohort is None else len(self.cohort),
            assumptions=ASSUMPTIONS,
            label="treatment was randomised" if randomised else NOT_RANDOMISED,
            notice=NOTICE,
        )


def _training(model: Estimator) -> dict[str, float | int | str]:
    """What the model file says of its training."""
    one = model.members_[0] if isinstance(model, DeepEnsemble) else model
    history, experience = getattr(one, "history_", None), one.experience_
    found: dict[str, float | int | str] = {"seed": one.seed}
    if history is not None and history.height:
        found |= {"epochs": int(history["epoch"].max()), "seconds": round(float(history["seconds"].max()), 1)}
    if experience is not None:
        found["windows"] = int(experience.windows.max())
    return found
