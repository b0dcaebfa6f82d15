"""Questions wait at a desk: one worker answers, and what came in while it was busy is answered together."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from counterpath.estimators import Estimator
from counterpath.explorer.limits import Limits
from counterpath.explorer.problems import ProblemError
from counterpath.explorer.questions import Question, Told, tell

Make = Callable[[], Question]


class Desk:
    """All work of the library is done on one thread, off the event loop.

    Attributes:
        model: Who answers.
        limits: Of what may wait, and for how long.
        worker: The thread.
    """

    def __init__(self, model: Estimator, limits: Limits):
        self.model = model
        self.limits = limits
        self._waiting: deque[tuple[Make, asyncio.Future[Told]]] = deque()
        self.worker = ThreadPoolExecutor(1, thread_name_prefix="desk")
        self._serving: asyncio.Task[None] | None = None

    async def ask(self, make: Make) -> Told:
        """An answer, or the problem that stood in its way.

        Args:
            make: Reads the question; it runs on the worker, too.
        """
        if len(self._waiting) >= self.limits.waiting:
            raise ProblemError(503, "Busy", "Too many questions are waiting. Ask again in a moment.")
        future: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._waiting.append((make, future))
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        return await self._in_time(future)

    async def run(self, work: Callable[[], Any]) -> Any:
        """Other work of the library, in turn."""
        return await self._in_time(asyncio.get_running_loop().run_in_executor(self.worker, work))

    def close(self) -> None:
        """Finish what has begun, and no more."""
        self.worker.shutdown(cancel_futures=True)

    async def _in_time(self, future: asyncio.Future[Any]) -> Any:
        try:
            return await asyncio.wait_for(future, self.limits.answer_seconds)
        except TimeoutError:
            raise ProblemError(504, "Too slow", "The answer took too long. Ask about less, or later.") from None

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            some = []
            while self._waiting and len(some) < self.limits.together:
                make, future = self._waiting.popleft()
                if not future.done():  # whoever asked has given up
                    some.append((make, future))
            answers = await loop.run_in_executor(self.worker, self._answer, [make for make, _ in some])
            for (_, future), answer in zip(some, answers, strict=True):
                if future.done():
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    def _answer(self, makes: Sequence[Make]) -> list[Told | Exception]:
        """Of each; a question that cannot be read, or be answered, keeps no other from its answer."""
        answers: list[Any] = [None] * len(makes)
        by_kind: dict[Any, list[tuple[int, Question]]] = defaultdict(list)
        for i, make in enumerate(makes):
            try:
                question = make()
                by_kind[question.kind].append((i, question))
            except Exception as error:
                answers[i] = error
        for same in by_kind.values():
            for some in self._parts(same):
                told = self._tell([question for _, question in some])
                for (i, _), answer in zip(some, told, strict=True):
                    answers[i] = answer
        return answers

    def _tell(self, questions: list[Question]) -> Sequence[Any]:
        """Together; where that fails, each by itself, so that only the one at fault gets no answer."""
        try:
            return tell(self.model, questions)
        except Exception as error:
            return [error] if len(questions) == 1 else [self._tell([question])[0] for question in questions]

    def _parts(self, same: list[tuple[int, Question]]) -> list[list[tuple[int, Question]]]:
        """As many as the model is asked about at once."""
        parts, rows = [[]], 0
        most = min(self.limits.together, same[0][1].size.together)
        for one in same:
            rows += len(one[1].plans)
            if rows > most and parts[-1]:
                parts.append([])
                rows = len(one[1].plans)
            parts[-1].append(one)
        return parts
