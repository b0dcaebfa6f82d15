"""Whether a claim or an aim holds, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from counterpath.experiments.experiment import Aim

# By model and horizon: the figure of each seed.
Values = Mapping[tuple[str, float], Mapping[int, float]]
CHANCE = 2.0  # standard errors: a difference over seeds that is smaller may be chance


@dataclass(frozen=True)
class Verdict:
    """About one aim in one world.

    Attributes:
        aim: What should be.
        word: `holds`, `holds partly`, `does not hold`, `within chance` or `not measured`.
        found: The figures that it rests on, in words.
    """

    aim: Aim
    word: str
    found: str

    @property
    def is_missed(self) -> bool:
        """Whether it fails at some horizon."""
        return self.word in ("holds partly", "does not hold")


def judge(aim: Aim, values: Values, horizons: Sequence[float]) -> Verdict:
    """Compare means over seeds at every horizon; two models by the differences of the seeds that both have.

    Args:
        aim: What should be.
        values: Of the aim's figure.
        horizons: At which it should hold.
    """
    if aim.grows:
        return _judge_growth(aim, values, horizons)
    met: list[bool | None] = []
    said = []
    for horizon in horizons:
        own, other = (values.get((model, horizon), {}) for model in (aim.model, aim.than or ""))
        if not own or (aim.than is not None and not other):
            continue
        mean = _mean(own)
        if aim.than is None:
            met.append((aim.lowest is None or mean >= aim.lowest) and (aim.highest is None or mean <= aim.highest))
            said.append(f"{_with_spread(own)} at {horizon:g}")
        else:
            met.append(None if _may_be_chance(own, other) else mean <= _mean(other))
            said.append(f"{_with_spread(own)} beside {_with_spread(other)} at {horizon:g}")
    if not met:
        return Verdict(aim, "not measured", "")
    word = _word(met)
    if len(met) < len(horizons) and word == "holds":
        word = "holds where measured"
    return Verdict(aim, word, "; ".join(said))


def _judge_growth(aim: Aim, values: Values, horizons: Sequence[float]) -> Verdict:
    """Whether the other's figure, divided by ours, is larger at each longer horizon."""
    found = []
    for horizon in horizons:
        own, other = (values.get((model, horizon), {}) for model in (aim.model, aim.than or ""))
        if own and other:
            found.append((horizon, _mean(other) / _mean(own)))
    if len(found) < 2:
        return Verdict(aim, "not measured", "")
    met = [later > earlier for (_, earlier), (_, later) in pairwise(found)]
    return Verdict(aim, _word(met), "; ".join(f"{ratio:.3g} times at {horizon:g}" for horizon, ratio in found))


def _word(met: Sequence[bool | None]) -> str:
    """Of all horizons; None where it may be chance."""
    if set(met) == {None}:
        return "within chance"
    return "holds" if all(met) else "holds partly" if any(met) else "does not hold"


def _may_be_chance(own: Mapping[int, float], other: Mapping[int, float]) -> bool:
    differences = [own[seed] - other[seed] for seed in own.keys() & other.keys()]
    if len(differences) < 2:
        return False  # nothing is known of chance
    return bool(abs(np.mean(differences)) < CHANCE * np.std(differences, ddof=1) / np.sqrt(len(differences)))


def _mean(values: Mapping[int, float]) -> float:
    return float(np.mean(list(values.values())))


def _with_spread(values: Mapping[int, float]) -> str:
    every = list(values.values())
    spread = f" ± {np.std(every, ddof=1):.1g}" if len(every) > 1 else ""
    return f"{np.mean(every):.4g}{spread}"
