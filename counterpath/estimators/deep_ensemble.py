"""Several fits of one model from different seeds, taken together (Lakshminarayanan et al. 2017)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from counterpath.cohort import Cohort, CohortError, Plan
from counterpath.estimators.contract import Estimator
from counterpath.estimators.joint_fit import fit_members
from counterpath.estimators.neural import MOST_NETWORKS, NeuralEstimator
from counterpath.predictive import Law, join_draws


class DeepEnsemble(Estimator):
    """The mixture of members that differ in their seed.

    Neural members train at once; others one after the other.

    Attributes:
        model: What the members are copies of; it is not fitted itself.
        members: How many.
        members_: After `fit`, the fitted models.
    """

    def __init__(self, model: Estimator, *, members: int = 5):
        if members < 2:
            raise CohortError(f"members={members} is no ensemble. Use 2 or more.")
        self.model = model
        self.members = members
        self.seed = model.seed
        self.max_horizon = model.max_horizon
        self.draws_to_judge = model.draws_to_judge

    def fit(self, train: Cohort, validation: Cohort | None = None, **options: Any) -> DeepEnsemble:
        """Fit every member on the same patients; `options` are the model's own."""
        made = self.new_members()
        if isinstance(self.model, NeuralEstimator):
            fit_members([m for m in made if isinstance(m, NeuralEstimator)], [train], [validation], **options)
        else:
            for member in made:
                member.fit(train, validation, **options)
        self.take(made)
        return self

    def new_members(self) -> list[Estimator]:
        """Unfitted, each with a seed of its own."""
        made = [copy(self.model) for _ in range(self.members)]
        for number, member in enumerate(made):
            # Seeds of members are far apart, so that neighbouring ensembles do not share them.
            member.seed = self.model.seed * MOST_NETWORKS + number
        return made

    def __repr__(self) -> str:
        return f"DeepEnsemble({self.model!r}, members={self.members})"

    @property
    def parameters(self) -> dict[str, Any]:
        """Of each member, and how many there are."""
        return {"members": self.members, **getattr(self.model, "parameters", {})}

    @property
    def history_(self) -> pl.DataFrame:
        """Of all members, one after the other, as if they were posteriors of one model."""
        parts, first = [], 0
        for own in (member.history_ for member in self.members_ if isinstance(member, NeuralEstimator)):
            parts.append(own.with_columns(pl.col("posterior") + first))
            first += own["posterior"].n_unique()
        if not parts:
            raise AttributeError("Members of this ensemble were not trained in epochs.")
        return pl.concat(parts)

    def take(self, members: Sequence[Estimator]) -> None:
        """Members share what they learned from; how sure each is by itself says nothing of all together."""
        self.members_ = list(members)
        self.seed = members[0].seed // MOST_NETWORKS
        self.schema = members[0].schema
        own = members[0].experience_
        self.experience_ = None if own is None else replace(own, usual_spread=None)

    @property
    def outcomes_predicted(self) -> int:
        """As many as each member does."""
        return self.members_[0].outcomes_predicted

    def laws(
        self, history: Cohort, plan: Plan, horizons: np.ndarray, draws: int, seed: int
    ) -> Iterator[tuple[Law, ...]]:
        """As many draws of each member, to one more or less, and none with the random numbers of another."""
        shares = [draws // self.members + (i < draws % self.members) for i in range(self.members)]
        every = [
            member.laws(history, plan, horizons, number, seed * MOST_NETWORKS + which)
            for which, (member, number) in enumerate(zip(self.members_, shares, strict=True))
            if number
        ]
        for of_members in zip(*every, strict=True):
            yield tuple(join_draws(of_outcome) for of_outcome in zip(*of_members, strict=True))
