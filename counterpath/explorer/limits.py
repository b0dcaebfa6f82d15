"""How much one request may ask for, so that nobody can keep the others waiting."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Of one server.

    Attributes:
        body_bytes: Of a request.
        plans: In a comparison.
        events: Doses and infusions of a plan.
        records: Rows of a posted history: observations and treatments together.
        columns: Of a table.
        horizons: Of a question.
        draws: Of the weights.
        waiting: Questions that may wait; whoever comes then is asked to come again.
        together: Forecasts that are made at once.
        read_seconds: Until a request's body must be there.
        answer_seconds: Until an answer must be there.
    """

    body_bytes: int = 1_000_000
    plans: int = 4
    events: int = 200
    records: int = 5_000
    columns: int = 1_000
    horizons: int = 64
    draws: int = 400
    waiting: int = 256
    together: int = 64
    read_seconds: float = 10.0
    answer_seconds: float = 30.0
