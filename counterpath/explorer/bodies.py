"""A body's outline is looked over before pydantic reads it, which names each of a thousand flaws at some cost."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from counterpath.cohort.findings import counted
from counterpath.explorer.limits import MOST_KEYS, MOST_RECORDS
from counterpath.explorer.problems import ProblemError


class LookedOver(APIRoute):
    """A path of the API, of whose bodies no list or object is longer than any that can be answered."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """First the outline, then all of it."""
        read = super().get_route_handler()

        async def look_over(request: Request) -> Response:
            with suppress(ValueError, RecursionError):  # what is no JSON is refused where it is read
                _check_lengths(await request.json())
            return await read(request)

        return look_over


def _check_lengths(content: Any) -> None:
    waiting: list[tuple[str, Any]] = [("", content)]
    while waiting:
        place, part = waiting.pop()
        if not isinstance(part, (list, dict)):
            continue
        what, most = ("row", MOST_RECORDS) if isinstance(part, list) else ("field", MOST_KEYS)
        if len(part) > most:
            detail = f"{counted(len(part), what)} are more than {most:,}."
            raise ProblemError(413, "Too much", detail, place.removeprefix(".") or "body")
        pairs = enumerate(part) if isinstance(part, list) else part.items()
        waiting += [(f"{place}.{key}", value) for key, value in pairs if isinstance(value, (list, dict))]
