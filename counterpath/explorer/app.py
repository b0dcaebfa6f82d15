"""The explorer's HTTP API on a fitted model, and its page."""

from __future__ import annotations

import math
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, Response
from starlette.exceptions import HTTPException

from counterpath._version import __version__
from counterpath.cohort import Cohort, CohortError, Plan
from counterpath.cohort.findings import CohortWarning, PlanError, PlanWarning, counted, did_you_mean
from counterpath.estimators import Estimator
from counterpath.explorer.bodies import LookedOver
from counterpath.explorer.described import add_examples
from counterpath.explorer.desk import Desk
from counterpath.explorer.guard import Guard
from counterpath.explorer.limits import Limits
from counterpath.explorer.messages import (
    Asked,
    CardAnswer,
    ComparisonAnswer,
    ComparisonAsked,
    EffectAnswer,
    EffectAsked,
    HealthAnswer,
    HistoryAnswer,
    PatientsAnswer,
    PredictionAnswer,
    PredictionAsked,
    ReadinessAnswer,
    RecordAnswer,
    Tables,
)
from counterpath.explorer.opening import Opening
from counterpath.explorer.patients import Patients, posted
from counterpath.explorer.problems import MEDIA_TYPE, ProblemDetails, ProblemError, as_problem, in_field
from counterpath.explorer.questions import Question, Told, in_unit_of
from counterpath.explorer.tables import from_tables

MOST_PATIENTS = 200  # in one answer
PAGE = {"/": "index.html", "/explorer.js": "explorer.js", "/explorer.css": "explorer.css"}
WHAT_CAN_GO_WRONG: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemDetails, "content": {MEDIA_TYPE: {}}, "description": what}
    for status, what in {
        400: "The address is wrong, or the body is no JSON.",
        401: "The token is missing or wrong.",
        404: "There is no such patient.",
        408: "The request came too slowly.",
        413: "The request is too large.",
        415: "The body is not said to be JSON.",
        422: "The request cannot be answered; `errors` names fields.",
        503: "Too many questions are waiting, or the model is not ready.",
        504: "The answer took too long.",
    }.items()
}


def create_app(
    model: Estimator,
    cohort: Cohort | None = None,
    *,
    token: str | None = None,
    local_only: bool = True,
    limits: Limits | None = None,
) -> FastAPI:
    """The application: one model, perhaps some patients.

    Args:
        model: Fitted.
        cohort: Whom one can choose on the page.
        token: Without which nothing is answered.
        local_only: Whether it answers to names of this machine only.
        limits: Of requests.
    """
    limits = limits or Limits()
    desk, patients = Desk(model, limits), Patients(cohort)
    opening = Opening(model, cohort, limits.together)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warming = desk.worker.submit(opening.prepare)
        yield
        warming.cancel()
        desk.close()

    app = FastAPI(
        title="counterpath explorer",
        version=__version__,
        description="What would happen to this patient under another treatment plan, and how sure are we? "
        "Not a medical device: for research only.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=WHAT_CAN_GO_WRONG,
    )
    app.add_middleware(Guard, limits=limits, token=token, local_only=local_only)
    _answer_errors(app)
    _serve_page(app)
    app.router.route_class = LookedOver  # of the paths below

    @app.get("/api/health", tags=["server"])
    async def health() -> HealthAnswer:
        """Whether the server is alive."""
        return HealthAnswer(status="alive")

    @app.get("/api/ready", tags=["server"])
    async def ready() -> ReadinessAnswer:
        """Whether the first question will be answered as quickly as all others."""
        opening.require_ready()
        return ReadinessAnswer(status="ready")

    @app.get("/api/card", tags=["model"])
    async def card() -> CardAnswer:
        """What the model is, what it learned from, and how far to trust it."""
        opening.require_ready()
        return opening.card

    @app.get("/api/patients", tags=["patients"])
    async def list_patients(
        search: Annotated[str, Query(max_length=200)] = "",
        sort: Annotated[str, Query(pattern="^(order|name|uncertainty)$")] = "order",
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
        size: Annotated[int, Query(ge=1, le=MOST_PATIENTS)] = 50,
    ) -> PatientsAnswer:
        """Patients of the loaded cohort, whose names hold the words; the least certain first, if asked."""
        opening.require_ready()
        found = [line for line in opening.lines if search.casefold() in line.patient.casefold()]
        if sort == "name":
            found.sort(key=lambda line: line.patient)
        elif sort == "uncertainty":
            found.sort(key=lambda line: -math.inf if line.width is None else -line.width)
        shown = found[(page - 1) * size : page * size]
        return PatientsAnswer(total=len(found), page=page, patients=tuple(shown))

    @app.get("/api/record", tags=["patients"])
    async def record(
        patient: Annotated[str, Query(min_length=1, max_length=200)],
        at: Annotated[float | None, Query(ge=-1e9, le=1e9)] = None,
    ) -> RecordAnswer:
        """What is known of a patient of the cohort at a time, and what came after."""
        return await desk.run(lambda: patients.record(patient, at, model.max_horizon))

    @app.post("/api/history", tags=["patients"])
    async def read_history(tables: Tables) -> HistoryAnswer:
        """A record from CSV text, as it can be sent with a question. Nothing is kept."""
        return await desk.run(lambda: from_tables(tables, opening.schema, limits))

    @app.post("/api/predict", tags=["questions"])
    async def predict(asked: PredictionAsked) -> PredictionAnswer:
        """What may happen to a patient under a plan."""
        told = await desk.ask(_question(asked, {"plan": asked.plan}, model, patients, limits))
        return PredictionAnswer(**_common(told), outlook=told.outlooks["plan"])

    @app.post("/api/effect", tags=["questions"])
    async def effect(asked: EffectAsked) -> EffectAnswer:
        """What a plan changes against another, in expectation."""
        plans = {"plan": asked.plan, "versus": asked.versus}
        told = await desk.ask(_question(asked, plans, model, patients, limits))
        change = told.change("plan", "versus", asked.better, asked.margin)
        return EffectAnswer(**_common(told), change=change, **_labels(told, "plan", "versus"))

    @app.post("/api/compare", tags=["questions"])
    async def compare(asked: ComparisonAsked) -> ComparisonAnswer:
        """Several plans side by side, with what each changes against one of them."""
        if len(asked.plans) > limits.plans:
            detail = f"{counted(len(asked.plans), 'plan')} are more than {limits.plans}."
            raise ProblemError(422, "Too many plans", detail, "plans")
        versus = next(iter(asked.plans)) if asked.versus is None else asked.versus
        if versus not in asked.plans:
            detail = f"No plan is called {versus!r}. {did_you_mean(versus, list(asked.plans))}"
            raise ProblemError(422, "This cannot be asked", detail, "versus")
        told = await desk.ask(_question(asked, asked.plans, model, patients, limits, within="plans."))
        others = [name for name in asked.plans if name != versus]
        best = told.probability_best(asked.better) if asked.better and others else None
        return ComparisonAnswer(
            **_common(told),
            outlooks=told.outlooks,
            versus=versus,
            changes={name: told.change(name, versus, asked.better) for name in others},
            probability_best=best,
            **_labels(told, versus, versus),
        )

    add_examples(app, opening.schema, next(iter(patients.names), None))
    return app


def _question(
    asked: Asked, plans: Mapping[str, Plan], model: Estimator, patients: Patients, limits: Limits, within: str = ""
) -> Callable[[], Question]:
    """What reads the question, on the worker; what can be said at once is said at once."""
    for name, plan in plans.items():
        field = f"{within}{name}"
        parts = (*plan.doses, *plan.infusions, *plan.keeps_running)
        if len(parts) + len(plan.untreated) > limits.events:
            detail = f"{len(parts):,} doses and infusions are more than {limits.events:,}."
            raise ProblemError(422, "Too much", detail, field)
        if plan.untreated or any(part.patient is not None for part in parts):
            raise ProblemError(422, "This cannot be asked", "The plan names a patient. Leave `patient` out.", field)
    horizons = tuple(model.even_horizons()) if asked.horizons is None else asked.horizons
    if max(horizons) > model.max_horizon:
        detail = f"The model looks {model.max_horizon:g} ahead, and {max(horizons):g} is further."
        raise ProblemError(422, "This cannot be asked", detail, "horizons")
    schema = model.schema
    assert schema is not None  # a fitted model has one
    names = [variable.name for variable in schema.outcomes[: model.outcomes_predicted]]
    if asked.outcome is not None and asked.outcome not in names:
        detail = f"{asked.outcome!r} is no outcome of this model. {did_you_mean(asked.outcome, names)}"
        raise ProblemError(422, "This cannot be asked", detail, "outcome")
    outcome = 0 if asked.outcome is None else names.index(asked.outcome)

    def make() -> Question:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", CohortWarning)
            if asked.history is not None:
                history = posted(asked.history, schema, asked.at, limits)
            else:
                history = patients.known(asked.patient or "", asked.at)
        notes = tuple(str(warning.message) for warning in said)
        in_one_unit = {}
        for name, plan in plans.items():
            with in_field(f"{within}{name}"), warnings.catch_warnings():
                warnings.simplefilter("ignore", PlanWarning)  # the answer says it
                in_one_unit[name] = in_unit_of(schema, plan)
                in_one_unit[name].resolve(history)
        return Question(history, in_one_unit, horizons, asked.draws, outcome, notes)

    return make


def _common(told: Told) -> dict[str, Any]:
    asked = told.question
    return {
        "at": float(asked.history.history_end[0]),
        "elapsed": asked.horizons,
        "outcome": asked.history.schema.outcomes[asked.outcome].name,
        "warnings": told.warnings,
    }


def _labels(told: Told, plan: str, versus: str) -> dict[str, Any]:
    effect = told.effect(plan, versus)
    return {"label": effect.label, "assumptions": effect.assumptions}


def _answer_errors(app: FastAPI) -> None:
    """Every error is a problem in the same form."""

    def as_response(details: ProblemDetails, headers: Mapping[str, str] | None = None) -> Response:
        return Response(details.model_dump_json(), details.status, headers, MEDIA_TYPE)

    @app.exception_handler(ProblemError)
    async def problem(_: Request, error: ProblemError) -> Response:
        return as_response(error.details)

    @app.exception_handler(CohortError)
    @app.exception_handler(PlanError)
    async def cannot(_: Request, error: Exception) -> Response:
        """What the library refuses without a word on the field."""
        return as_response(ProblemError(422, "This cannot be asked", str(error)).details)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        (first, *_others) = error.errors()
        if first["type"] == "json_invalid":
            detail = f"The body is no JSON: {first['ctx']['error']}, at sign {first['loc'][-1]}."
            return as_response(ProblemDetails(title="No JSON", status=400, detail=detail))
        return as_response(as_problem(error.errors()))

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        details = ProblemDetails(title=str(error.detail), status=error.status_code, detail=str(error.detail))
        return as_response(details, error.headers)


def _plotting_script() -> Path:
    """Of the plotly package, which need not be imported for it."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise ImportError("The explorer needs more packages: pip install 'counterpath[explorer]'.")
    return Path(spec.origin).parent / "package_data" / "plotly.min.js"


PLOTTING_SCRIPT = _plotting_script()  # what is missing is said on import, as of any package


def _serve_page(app: FastAPI) -> None:
    """The page and what it is made of; nothing comes from elsewhere."""
    own = files("counterpath.explorer") / "page"
    paths = {path: Path(str(own / name)) for path, name in PAGE.items()} | {"/plotly.min.js": PLOTTING_SCRIPT}

    def served(path: Path) -> Callable[[], FileResponse]:
        return lambda: FileResponse(path)

    for url, path in paths.items():
        app.get(url, include_in_schema=False)(served(path))
