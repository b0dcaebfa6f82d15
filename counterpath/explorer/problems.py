"""What went wrong, as problem details (RFC 9457) that name the field."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel

from counterpath.cohort import CohortError
from counterpath.cohort.findings import PlanError

MEDIA_TYPE = "application/problem+json"


class Flaw(BaseModel):
    """One thing to mend.

    Attributes:
        field: Where, such as `plans.A.doses.0.time`.
        message: What is wrong, and what to do.
    """

    field: str
    message: str


class ProblemDetails(BaseModel):
    """The body of every answer that is an error.

    Attributes:
        title: The kind of problem.
        status: Of the HTTP answer.
        detail: In one sentence.
        errors: By field, where fields are to blame.
    """

    title: str
    status: int
    detail: str
    errors: list[Flaw] = []


class ProblemError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, title: str, detail: str, field: str | None = None):
        super().__init__(detail)
        self.details = ProblemDetails(
            title=title, status=status, detail=detail, errors=[Flaw(field=field, message=detail)] if field else []
        )


@contextmanager
def in_field(field: str) -> Iterator[None]:
    """What the library refuses within is this field's fault."""
    try:
        yield
    except (CohortError, PlanError) as error:
        raise ProblemError(422, "This cannot be asked", str(error), field) from error


def flaws_of(errors: list[dict[str, Any]]) -> list[Flaw]:
    """What pydantic found, by field; the first part says only that it is the body."""
    places = [tuple(str(part) for part in error["loc"][1:] or error["loc"]) for error in errors]
    return [
        Flaw(field=".".join(place), message=error["msg"].removeprefix("Value error, "))
        for place, error in zip(places, errors, strict=True)
        # What is too short only because its parts are wrong is not too short.
        if not any(len(other) > len(place) and other[: len(place)] == place for other in places)
    ]
