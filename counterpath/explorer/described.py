"""The API's description in OpenAPI, with examples that this very server answers: they name what its model knows."""

from __future__ import annotations

from typing import Any

import polars as pl
from fastapi import FastAPI

from counterpath.cohort import Schema
from counterpath.cohort.schema import Treatment, Variable


def add_examples(app: FastAPI, schema: Schema, patient: str | None) -> None:
    """To each path that takes a body, and to what asks for a patient.

    Args:
        app: With all of its paths.
        schema: Of the model.
        patient: One of the loaded cohort; where there is none, the examples post a record.
    """
    plain = app.openapi

    def with_examples() -> dict[str, Any]:
        if app.openapi_schema is None:
            description = plain()
            for path, values in _examples(schema, patient).items():
                content = description["paths"][path]["post"]["requestBody"]["content"]["application/json"]
                content["examples"] = {name: {"value": value} for name, value in values.items()}
            for parameter in description["paths"]["/api/record"]["get"]["parameters"]:
                if parameter["name"] == "patient" and patient is not None:
                    parameter["example"] = patient
        return app.openapi_schema or {}

    app.openapi = with_examples


def _examples(schema: Schema, patient: str | None) -> dict[str, dict[str, Any]]:
    """By path and name."""
    record, tables = _record(schema)
    who: dict[str, dict[str, Any]] = {} if patient is None else {"patient": {"patient": patient}}
    who |= {"history": {"history": record}}
    something = _plan(schema.treatments[0]) if schema.treatments else {}
    asked = {
        "/api/predict": {"plan": something},
        "/api/effect": {"plan": something, "versus": {}, "better": "lower"},
        "/api/compare": {"plans": {"A": {}, "B": something}, "versus": "A", "better": "lower"},
    }
    return {path: {name: one | what for name, one in who.items()} for path, what in asked.items()} | {
        "/api/history": {"tables": tables}
    }


def _plan(treatment: Treatment) -> dict[str, Any]:
    if treatment.dose is None and treatment.rate is not None:
        return {"infusions": [{"treatment": treatment.name, "start": 0.0, "rate": treatment.rate.usual}]}
    return {"doses": [{"treatment": treatment.name, "time": 0.0}]}


def _record(schema: Schema) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of nobody: next to nothing is known, as it is posted and as tables."""
    values = {variable.name: some_value(variable) for variable in schema.outcomes}
    static = {variable.name: some_value(variable) for variable in schema.static}
    posted = {"observations": [{"time": 0.0, "values": values}], "static": static}
    return posted, {"observations": _csv({schema.time_column: 0.0} | values), "static": _csv(static)}


def _csv(row: dict[str, float | str]) -> str:
    return pl.DataFrame([row]).write_csv() if row else ""


def some_value(variable: Variable) -> float | str:
    """One that can be: a category, or a number within the bounds."""
    if variable.kind == "categorical":
        return variable.levels[0]
    low = variable.lower if variable.lower is not None else (variable.upper or 1.0) - 2.0
    high = variable.upper if variable.upper is not None else low + 2.0
    return (low + high) / 2
