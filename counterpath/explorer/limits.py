"""How much one request may ask for, so that nobody can keep the others waiting."""

from __future__ import annotations

from dataclasses import dataclass

# As parts of the HTTP API these are fixed: what is longer is refused before it is looked at.
MOST_EVENTS = 200  # doses, infusions or rates that go on
MOST_RECORDS = 5_000  # of observations or of treatments
MOST_KEYS = 200  # of an object
MOST_HORIZONS = 64


@dataclass(frozen=True)
class Limits:
    """Of one server.

    Attributes:
        body_bytes: Of a request.
        plans: In a comparison.
        events: Doses and infusions of a plan, all together.
        records: Rows of a posted history, observations and treatments together.
        columns: Of a table.
        waiting: Questions that may wait; whoever comes then is asked to come again.
        together: Forecasts that are made at once.
        read_seconds: Until a request's body must be there.
        answer_seconds: Until an answer must be there.
    """

    body_bytes: int = 1_000_000
    plans: int = 4
    events: int = MOST_EVENTS
    records: int = MOST_RECORDS
    columns: int = 1_000
    waiting: int = 256
    together: int = 64
    read_seconds: float = 10.0
    answer_seconds: float = 30.0
