"""What went wrong, as problem details (RFC 9457) that name the field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel

from counterpath.cohort import CohortError
from counterpath.cohort.findings import PlanError, counted

MEDIA_TYPE = "application/problem+json"
MOST_FLAWS = 50  # in one answer


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
        errors: By field, where fields are to blame; of many, some. Of the rows of a list, the first wrong one.
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


def as_problem(errors: Sequence[Mapping[str, Any]]) -> ProblemDetails:
    """What pydantic found, by field; the first part of a place says only that it is the body."""
    places = [tuple(str(part) for part in error["loc"][1:] or error["loc"]) for error in errors]
    wholes = {place[:length] for place in places for length in range(len(place))}
    # What is too short only because its parts are wrong is not too short.
    flawed = [(place, error) for place, error in zip(places, errors, strict=True) if place not in wholes]
    flaws = [
        Flaw(field=".".join(place), message=error["msg"].removeprefix("Value error, "))
        for place, error in flawed[:MOST_FLAWS]
    ]
    more = len(flawed) - len(flaws)
    detail = f"{flaws[0].message}; and {counted(more, 'more flaw')}" if more else flaws[0].message
    return ProblemDetails(title="This cannot be asked", status=422, detail=detail, errors=flaws)
