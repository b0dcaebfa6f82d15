"""A fitted model as one file: weights, and a JSON header that says everything else. Nothing in it is executed.

The header holds configuration, grids, schema, scales and the training record, but no value of any patient. A digest of
header and weights tells a damaged file from a whole one.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file
from safetensors.numpy import save as to_bytes

from counterpath._version import __version__
from counterpath.cohort import Grid, Schema
from counterpath.cohort.rounding import rounded, rounded_down, rounded_up
from counterpath.cohort.schema import Amounts, in_plain_words
from counterpath.estimators.architecture import Architecture
from counterpath.estimators.bncde import BNCDE
from counterpath.estimators.contract import Estimator
from counterpath.estimators.deep_ensemble import DeepEnsemble
from counterpath.estimators.model_header import Header, Member, Paths
from counterpath.estimators.neural import NeuralEstimator
from counterpath.estimators.tecde import TECDE
from counterpath.models import NeuralCDE
from counterpath.paths.linear_response import LinearResponse
from counterpath.paths.tabulation import Tabulation
from counterpath.predictive import Experience
from counterpath.training import TrainingSettings

FORMAT = 7
LOST = 5  # what it says about linear responses cannot be followed any more; it was written for a day
MOST_HEADER_BYTES = 2**24
DIGITS = 2
KINDS: dict[str, type[NeuralEstimator]] = {"BNCDE": BNCDE, "TECDE": TECDE}
SCALES = ("first_scale", "step_scale", "plan_step_scale", "plan_level_scale", "change_scale")
RESPONSE = tuple(field.name for field in fields(LinearResponse))
GRIDS = ("grid", "plan_grid")
EXPERIENCE = ("horizons", "windows", "situations", "counts", "usual_spread")


class ModelFileError(ValueError):
    """A file that is no model of counterpath, or not a whole one."""


def save(model: Estimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, whole or not at all.

    Args:
        model: Fitted.
        path: Of the file; by custom it ends in `.safetensors`.
    """
    members = model.members_ if isinstance(model, DeepEnsemble) else [model]
    described, arrays = [], {}
    for number, member in enumerate(members):
        if not isinstance(member, NeuralEstimator) or type(member).__name__ not in KINDS:
            raise ModelFileError(
                f"{type(member).__name__} keeps values of its patients, or knows more than a file could hold, and is "
                "not saved. Fit it again where it is needed."
            )
        described.append(_describe(member))
        # The file takes memory as it lies, so rows must come one after the other.
        arrays |= {f"{number}/{name}": np.asarray(array, order="C") for name, array in _arrays(member).items()}
    header = Header(
        format=FORMAT,
        ensemble=isinstance(model, DeepEnsemble),
        members=tuple(described),
        levels=dict(model.levels_),
        versions=_versions(),
    )
    text = header.model_dump_json()
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")  # beside it, then in its place
    try:
        with new.open("wb") as file:
            file.write(to_bytes(arrays, metadata={"counterpath": text, "sha256": _digest(text, arrays)}))
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Estimator:
    """The model that `save` wrote, ready to predict. Nothing in the file is executed.

    Args:
        path: Of the file.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no model at {path}.")
    text, digest, arrays = _read(path)
    header = _header(path, text)
    if digest != _digest(text, arrays):
        raise ModelFileError(f"{path} was changed or damaged after it was written. Save the model again.")
    try:
        members: list[Estimator] = [
            _rebuild(member, _within(arrays, str(i))) for i, member in enumerate(header.members)
        ]
    except ValidationError as error:
        raise ModelFileError(f"{path} does not describe a model. {in_plain_words(error)}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} does not hold what its header describes: {error}") from error
    model = members[0]
    if header.ensemble:
        model = DeepEnsemble(members[0], members=len(members))
        model.take(members)
    model.levels_ = header.levels
    return model


# --- the file


def _read(path: Path) -> tuple[str, str, dict[str, np.ndarray]]:
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
        if length > MOST_HEADER_BYTES:
            raise ModelFileError(f"{path} is not a model of counterpath: its header would have {length:,} bytes.")
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if not {"counterpath", "sha256"} <= metadata.keys():
                raise ModelFileError(f"{path} is a safetensors file, but not a model of counterpath.")
        return metadata["counterpath"], metadata["sha256"], load_file(path)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path} cannot be read as a model: {error}. Is it whole?") from error


def _header(path: Path, text: str) -> Header:
    try:
        content = json.loads(text)
        written = content["format"]
        if isinstance(written, int) and written > FORMAT:
            raise ModelFileError(
                f"{path} was written by a newer counterpath (format {written}; this one reads up to {FORMAT}). Update: "
                "pip install --upgrade counterpath."
            )
        if written == LOST:
            raise ModelFileError(
                f"{path} was written by a version in development (format {written}), whose models are not read any "
                "more. Fit the model again."
            )
        return Header.model_validate(content, strict=False)
    except ValidationError as error:
        raise ModelFileError(f"{path} does not describe a model. {in_plain_words(error)}") from error
    except (json.JSONDecodeError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{path} has a header that cannot be read: {error}.") from error


def _digest(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(repr((name, arrays[name].dtype.str, arrays[name].shape)).encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    libraries = {name: version(name) for name in ("jax", "equinox", "numpy", "safetensors")}
    return {"counterpath": __version__, "python": platform.python_version(), **libraries}


def _within(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(f"{prefix}/"): array for name, array in arrays.items() if name.startswith(f"{prefix}/")}


# --- one estimator


def _describe(model: NeuralEstimator) -> Member:
    if model.schema is None:
        raise ModelFileError(f"This {type(model).__name__} has not been fitted. Call fit(train) first.")
    table = model.tabulation_
    return Member(
        model=type(model).__name__,  # type: ignore[arg-type]  # `save` has checked that it is one of KINDS
        max_horizon=model.max_horizon,
        seed=model.seed,
        posteriors=model.posteriors,
        validation_share=model.validation_share,
        architecture=asdict(model.architecture),
        training=asdict(model.training),
        paths=Paths(
            cohort=_without_extremes(model.schema),
            scaler=table.scaler,
            interpolation=table.interpolation,
            plain_path=table.plain_path,
            corrects_last=table.corrects_last,
        ),
        history=model.history_.to_dict(as_series=False),
        longest_unseen=None if model.experience_ is None else model.experience_.longest_unseen,
    )


def _without_extremes(schema: Schema) -> Schema:
    """The largest and the smallest dose are each somebody's, so ranges are given a little wider."""

    def wider(seen: Amounts | None) -> Amounts | None:
        if seen is None:
            return None
        lowest, highest = rounded_down(seen.lowest, DIGITS), rounded_up(seen.highest, DIGITS)
        return Amounts(usual=rounded(seen.usual, DIGITS + 1), lowest=lowest, highest=highest)

    treatments = tuple(t.model_copy(update={"dose": wider(t.dose), "rate": wider(t.rate)}) for t in schema.treatments)
    return schema.model_copy(update={"treatments": treatments})


def _arrays(model: NeuralEstimator) -> dict[str, np.ndarray]:
    arrays = {name: getattr(model.tabulation_, name) for name in SCALES}
    arrays |= {name: getattr(model.tabulation_, name).edges for name in GRIDS}
    if model.tabulation_.response is not None:
        arrays |= {f"response/{name}": getattr(model.tabulation_.response, name) for name in RESPONSE}
    for name in EXPERIENCE:
        array = getattr(model.experience_, name, None)
        if array is not None:
            arrays[f"experience/{name}"] = array
    for number, network in enumerate(model.networks_):
        arrays |= {f"networks/{number}/{name}": np.asarray(leaf) for name, leaf in _leaves(network)}
    return arrays


def _leaves(network: NeuralCDE) -> list[tuple[str, Any]]:
    """Arrays of a network by the way to them."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(network, _is_array))
    return [(jax.tree_util.keystr(way), leaf) for way, leaf in leaves]


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, jax.ShapeDtypeStruct))


def _rebuild(member: Member, arrays: Mapping[str, np.ndarray]) -> NeuralEstimator:
    measured: dict[str, Any] = {name: Grid(arrays[name]) for name in GRIDS}
    measured |= {name: arrays[name] for name in SCALES}
    response = _within(arrays, "response")
    table = Tabulation(
        schema=member.paths.cohort,
        scaler=member.paths.scaler,
        interpolation=member.paths.interpolation,
        plain_path=member.paths.plain_path,
        corrects_last=member.paths.corrects_last,
        response=LinearResponse(**_as_now(response)) if response else None,
        **measured,
    )
    model = KINDS[member.model].__new__(KINDS[member.model])
    NeuralEstimator.__init__(
        model,
        member.max_horizon,
        TypeAdapter(Architecture).validate_python(member.architecture),
        TypeAdapter(TrainingSettings).validate_python(member.training),
        seed=member.seed,
        posteriors=member.posteriors,
        validation_share=member.validation_share,
    )
    model.tabulation_, model.schema = table, member.paths.cohort
    model.history_ = pl.DataFrame(member.history)
    if member.longest_unseen is not None:
        seen: dict[str, Any] = _within(arrays, "experience")
        model.experience_ = Experience(**seen, longest_unseen=member.longest_unseen)
    shape = eqx.filter_eval_shape(model.new_network, table, member.seed)  # no number is drawn, nothing compiled
    model.networks_ = tuple(
        _filled(shape, _within(arrays, f"networks/{number}"), number) for number in range(member.posteriors)
    )
    return model


def _as_now(response: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A linear response; up to format 6 its noise was half measured and half grew with time, whatever was given."""
    now = dict(response)
    if (std := now.pop("noise_std", None)) is not None:
        half = 0.5 * std**2
        now |= {"noise_measured": half, "noise_rates": half[:, None], "noise_levels": np.zeros((len(std), 1))}
        now["noise_shares"] = np.zeros_like(now["half_lives"])
    return {name: now[name] for name in RESPONSE}


def _filled(shape: NeuralCDE, arrays: Mapping[str, np.ndarray], number: int) -> NeuralCDE:
    """The network whose arrays have these shapes, with the file's values."""
    leaves = []
    for name, wanted in _leaves(shape):
        array = arrays.get(name)
        if array is None and name == ".outcome_head.noise_growth":  # which files have from format 4 on
            array = np.zeros(wanted.shape, wanted.dtype)
        if array is None or array.shape != wanted.shape or array.dtype != wanted.dtype:
            raise ValueError(f"network {number} lacks {name} of shape {wanted.shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} of network {number} has values that are not finite")
        leaves.append(jnp.asarray(array))
    arrays_of, rest = eqx.partition(shape, _is_array)
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays_of), leaves), rest)
