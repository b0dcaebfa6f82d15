"""A model before it is fitted, as a TOML file that a person can read and change."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import tomli_w
from pydantic import BaseModel, Field, ValidationError, create_model

from counterpath.cohort import CohortError
from counterpath.cohort.findings import did_you_mean
from counterpath.cohort.schema import Strict
from counterpath.estimators.bncde import BNCDE
from counterpath.estimators.contract import Estimator
from counterpath.estimators.deep_ensemble import DeepEnsemble
from counterpath.estimators.neural import NeuralEstimator
from counterpath.estimators.tecde import TECDE

Checked = TypeVar("Checked", bound=BaseModel)

MODELS: dict[str, type[NeuralEstimator]] = {"BNCDE": BNCDE, "TECDE": TECDE}
PRESETS = {
    "BNCDE": BNCDE,
    "BNCDE.large": BNCDE.large,
    "BNCDE.paper": BNCDE.paper,
    "TECDE": TECDE,
    "TECDE.paper": TECDE.paper,
}
TOP = {
    "model": "Which: BNCDE or TECDE.",
    "max_horizon": "The longest horizon that may be asked for, in the cohort's unit of time.",
    "ensemble": "How many such models are trained and taken together.",
}


class ConfigurationError(ValueError):
    """A file that does not describe a model."""


class Configuration(Strict):
    """Everything that decides about a fit besides the patients.

    Attributes:
        model: Its class.
        max_horizon: The longest horizon that may be asked for.
        ensemble: How many such models are trained and taken together.
        settings: Keyword arguments of the class; what is left out has its default.
    """

    model: Literal["BNCDE", "TECDE"]
    max_horizon: Annotated[float, Field(gt=0)]
    ensemble: Annotated[int, Field(ge=1)] = 1
    settings: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of(cls, preset: str, max_horizon: float) -> Configuration:
        """That of a named model, such as `BNCDE.large`, in full."""
        if preset not in PRESETS:
            raise ConfigurationError(f"{preset!r} is no model. {did_you_mean(preset, PRESETS)}")
        made: NeuralEstimator = PRESETS[preset](max_horizon)
        return cls(
            model=type(made).__name__,  # type: ignore[arg-type]  # all presets are of MODELS
            max_horizon=max_horizon,
            settings=made.parameters,
        )

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Configuration:
        """From a TOML file; an error names the key and its line."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
            content = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path} is not TOML: {error}.") from error
        read = _validated(cls, content, path, text, section="")
        _validated(_settings_of(read.model), read.settings, path, text, section="settings")
        try:
            read.build()
        except ConfigurationError as error:  # it begins with the setting's name
            line = _line_of(text, "settings", str(error).partition("=")[0])
            raise ConfigurationError(f"{path}{f', line {line}' if line else ''}: {error}") from error
        return read

    def complete(self) -> Configuration:
        """The same, with every default written out."""
        known = _settings_of(self.model)().model_dump() | self.settings
        return self.model_copy(update={"settings": known})

    def build(self) -> Estimator:
        """The model, ready to be fitted."""
        settings = _settings_of(self.model).model_validate_json(json.dumps(self.settings), strict=True)
        try:
            made = MODELS[self.model](self.max_horizon, **dict(settings))
            return made if self.ensemble == 1 else DeepEnsemble(made, members=self.ensemble)
        except CohortError as error:
            raise ConfigurationError(str(error)) from error

    def to_toml(self) -> str:
        """A file for `read`, with every setting and what it means."""
        top = {"model": self.model, "max_horizon": self.max_horizon, "ensemble": self.ensemble}
        lines = [_line(name, value, TOP[name]) for name, value in top.items()]
        meanings = _meanings(MODELS[self.model])
        known = self.complete().settings
        lines += ["", "[settings]", *(_line(name, value, meanings[name]) for name, value in known.items())]
        return "\n".join(lines) + "\n"


@cache
def _settings_of(model: str) -> type[BaseModel]:
    """Its keyword arguments with their types and defaults."""
    made = MODELS[model].__init__
    kinds = get_type_hints(made)
    fields: dict[str, Any] = {
        name: (kinds[name], parameter.default)
        for name, parameter in inspect.signature(made).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    return create_model(f"{model}Settings", __base__=Strict, **fields)


@cache
def _meanings(model: type[NeuralEstimator]) -> dict[str, str]:
    """What the docstring says of each keyword argument."""
    said = inspect.getdoc(model.__init__) or ""
    found = re.findall(r"^    (\w+): (.*(?:\n      +.*)*)", said, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


def _line(name: str, value: Any, meaning: str) -> str:
    if value is None:  # TOML has no such value
        return f"{f'# {name} =':<32}# {meaning}"
    value = list(value) if isinstance(value, tuple) else value
    written = " ".join(tomli_w.dumps({name: value}).split()).replace("[ ", "[").replace(", ]", "]")
    return f"{written:<32}# {meaning}"


def _validated(kind: type[Checked], content: Any, path: Path, text: str, section: str) -> Checked:
    """The content, or an error with a line for each key that is wrong."""
    try:
        # As JSON: a list may then stand for a tuple and 1 for 1.0, but no text for a number.
        return kind.model_validate_json(json.dumps(content, default=str), strict=True)
    except ValidationError as error:
        said = []
        for one in error.errors():
            name = str(one["loc"][0])
            strange = one["type"] == "extra_forbidden"
            what = f"There is no such key. {did_you_mean(name, kind.model_fields)}" if strange else f"{one['msg']}."
            line, key = _line_of(text, section, name), f"{section}.{name}" if section else name
            said.append(f"{path}{f', line {line}' if line else ''}, {key}: {what}")
        raise ConfigurationError("\n".join(said)) from error


def _line_of(text: str, section: str, name: str) -> int | None:
    """Where a key stands."""
    now = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line):
            now = header[1]
            if not section and now == name:
                return number
        elif now == section and re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=", line):
            return number
    return None
