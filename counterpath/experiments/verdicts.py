"""Whether a claim or an aim holds, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from counterpath.experiments.experiment import Aim
from counterpath.experiments.stated import stated

# By model and horizon: the figure of each seed.
Values = Mapping[tuple[str, float], Mapping[int, float]]
LEVEL = 0.95  # of the interval of a mean over seeds: what it holds may be chance


@dataclass(frozen=True)
class Verdict:
    """About one aim in one world.

    Attributes:
        aim: What should be.
        word: `holds`, `holds partly`, `does not hold`, `within chance`, `not measured` or `not judged`; the first and
            the third also with `, partly within chance`.
        found: The figures that it rests on, in words.
    """

    aim: Aim
    word: str
    found: str

    @property
    def is_open(self) -> bool:
        """Whether it does not simply hold, though it was judged."""
        return self.word not in ("holds", "holds where measured", "not measured", "not judged")

    @property
    def withheld(self) -> Verdict:
        """Its figures without the word, where there are too few patients: seeds do not show their chance."""
        return replace(self, word="not judged") if self.found else self


def judge(aim: Aim, values: Values, horizons: Sequence[float]) -> Verdict:
    """Compare means over seeds at every horizon; two models by the differences of the seeds that both have.

    Args:
        aim: What should be.
        values: Of the aim's figure.
        horizons: At which it should hold, or over which it should grow.
    """
    if aim.grows:
        return _judge_growth(aim, values, horizons)
    met: list[bool | None] = []
    said = []
    for horizon in horizons:
        own, other = (values.get((model, horizon), {}) for model in (aim.model, aim.than or ""))
        if not own or (aim.than is not None and not other):
            continue
        if aim.than is None:
            met.append(_is_between(list(own.values()), aim.lowest, aim.highest))
            said.append(f"{stated(list(own.values()))} at {horizon:g}")
        else:
            met.append(_is_less(own, other))
            said.append(f"{stated(list(own.values()))} beside {stated(list(other.values()))} at {horizon:g}")
    if not met:
        return Verdict(aim, "not measured", "")
    return Verdict(aim, _word(met) + _where(met, horizons), "; ".join(said))


def _judge_growth(aim: Aim, values: Values, horizons: Sequence[float]) -> Verdict:
    """Whether the other's figure, divided by ours, grows with the horizon: by slopes on a log scale, seed by seed."""
    own, other = (
        {horizon: found for (model, horizon), found in sorted(values.items()) if model == name}
        for name in (aim.model, aim.than)
    )
    both = [horizon for horizon in own if horizon in other]
    seeds = set.intersection(*({*own[horizon]} & {*other[horizon]} for horizon in both)) if both else set()
    if len(both) < 2 or not seeds:
        return Verdict(aim, "not measured", "")
    ratios = np.array([[other[horizon][seed] / own[horizon][seed] for horizon in both] for seed in sorted(seeds)])
    slopes = np.polyfit(both, np.log(ratios).T, 1)[0]
    said = (f"{_mean(other[horizon]) / _mean(own[horizon]):.3g} times at {horizon:g}" for horizon in both)
    return Verdict(aim, _word([_is_positive(slopes)]) + _where(both, horizons), "; ".join(said))


def _where(measured: Sequence[Any], horizons: Sequence[float]) -> str:
    return " where measured" if len(measured) < len(horizons) else ""


def _word(met: Sequence[bool | None]) -> str:
    """Of all horizons; None where it may be chance."""
    known = {one for one in met if one is not None}
    if not known:
        return "within chance"
    if len(known) == 2:
        return "holds partly"
    return ("holds" if True in known else "does not hold") + (", partly within chance" if None in met else "")


def _is_between(values: Sequence[float], lowest: float | None, highest: float | None) -> bool | None:
    sides = [
        _is_positive(distance)
        for bound, distance in (
            (lowest, np.subtract(values, lowest or 0.0)),
            (highest, np.subtract(highest or 0.0, values)),
        )
        if bound is not None
    ]
    return False if False in sides else None if None in sides else True


def _is_less(own: Mapping[int, float], other: Mapping[int, float]) -> bool | None:
    shared = sorted(own.keys() & other.keys())
    if not shared:
        return _mean(own) <= _mean(other)  # a model without seeds of its own, such as the oracle
    return _is_positive(np.array([other[seed] - own[seed] for seed in shared]))


def _is_positive(values: np.ndarray) -> bool | None:
    """Of their mean, or zero; None where that may be chance. Of a single value nothing is known of chance."""
    number, mean = len(values), float(np.mean(values))
    if number > 1:
        half = student_t.ppf((1 + LEVEL) / 2, number - 1) * np.std(values, ddof=1) / np.sqrt(number)
        if abs(mean) < half:
            return None
    return mean >= 0


def _mean(values: Mapping[int, float]) -> float:
    return float(np.mean(list(values.values())))
