"""Whether a claim or an aim holds, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from counterpath.experiments.experiment import Aim

# By model and horizon: the figure of each seed.
Values = Mapping[tuple[str, float], Sequence[float]]


@dataclass(frozen=True)
class Verdict:
    """About one aim in one world.

    Attributes:
        aim: What should be.
        word: `holds`, `holds partly`, `does not hold` or `not measured`.
        found: The figures that it rests on, in words.
    """

    aim: Aim
    word: str
    found: str


def judge(aim: Aim, values: Values, horizons: Sequence[float]) -> Verdict:
    """Compare means over seeds at every horizon.

    Args:
        aim: What should be.
        values: Of the aim's figure.
        horizons: At which it should hold.
    """
    met, said = [], []
    for horizon in horizons:
        own, other = (values.get((model, horizon), ()) for model in (aim.model, aim.than or ""))
        if not own or (aim.than is not None and not other):
            continue
        mean = float(np.mean(own))
        limit = float(np.mean(other)) if aim.than is not None else None
        met.append(
            (aim.lowest is None or mean >= aim.lowest)
            and (aim.highest is None or mean <= aim.highest)
            and (limit is None or mean <= limit)
        )
        beside = "" if limit is None else f" beside {limit:.4g}"
        said.append(f"{mean:.4g}{beside} at {horizon:g}")
    if not met:
        return Verdict(aim, "not measured", "")
    word = "holds" if all(met) else "holds partly" if any(met) else "does not hold"
    if len(met) < len(horizons) and word == "holds":
        word = "holds where measured"
    return Verdict(aim, word, "; ".join(said))
