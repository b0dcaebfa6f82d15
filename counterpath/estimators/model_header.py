"""What the header of a model file says: everything that is not an array."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from counterpath.cohort import Scaler, Schema
from counterpath.cohort.schema import Strict
from counterpath.estimators.neural import MOST_NETWORKS
from counterpath.paths import Interpolation
from counterpath.predictive import LevelMap


class Paths(Strict):
    """How records become arrays, besides the grids and sizes, which are arrays themselves."""

    cohort: Schema
    scaler: Scaler
    interpolation: Interpolation
    plain_path: bool
    corrects_last: bool


class Member(Strict):
    """One fitted estimator: a model, or a member of an ensemble."""

    model: Literal["BNCDE", "TECDE"]
    max_horizon: Annotated[float, Field(gt=0)]
    seed: int
    posteriors: Annotated[int, Field(gt=0, le=MOST_NETWORKS)]
    validation_share: float
    architecture: dict[str, Any]
    training: dict[str, Any]
    paths: Paths
    history: dict[str, list[Any]]
    longest_unseen: float | None = None  # from format 2 on: the one number of what was experienced, besides its arrays


class Header(Strict):
    """Everything in the file that is not an array."""

    format: int
    ensemble: bool
    members: Annotated[tuple[Member, ...], Field(min_length=1, max_length=MOST_NETWORKS)]
    levels: dict[str, LevelMap]
    versions: dict[str, str]
