"""How a command speaks: what it found on stdout, progress, warnings and errors on stderr, with an exit code."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

REFUSED, INTERRUPTED = 1, 130  # besides 0 for done and 2 for a command that cannot be understood

# What a message says to somebody who writes Python, and the same for a shell.
IN_SHELL = {
    r"pass ended='drop'": "add --drop-ended",
    r" See effect\.support\.": " See the column support.",
    r"cohort\.check\(\)": "counterpath check",
    r"Fit \w+\(max_horizon=…\) for longer ones": "Fit with a longer --max-horizon for longer ones",
    r"Read their tables with like=train\.": "Copy levels and treatments from the training folder's schema.toml.",
}

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress, and as little else as may be.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for another program.")]


@dataclass
class Voice:
    """Of one command.

    Attributes:
        quiet: Say only what was asked for.
        as_json: Say it as one JSON object.
        warned: Warnings so far, in plain words.
    """

    quiet: bool = False
    as_json: bool = False
    warned: list[str] = field(default_factory=list)

    @property
    def shows_progress(self) -> bool:
        """Whether long work shows how far it is, on stderr."""
        return not self.quiet and not self.as_json

    def say(self, text: str) -> None:
        """For a person who reads along."""
        if self.shows_progress:
            typer.echo(text)

    def show(self, content: Any) -> None:
        """A table or a text with style, for the same person."""
        if self.shows_progress:
            from rich.console import Console

            Console().print(content, highlight=False)

    def result(self, headline: str, **content: Any) -> None:
        """What the command found: one line, or an object that has it as `result`."""
        if self.as_json:
            said = _finite({"result": headline, **content, "warnings": self.warned})
            typer.echo(json.dumps(said, indent=2, default=str, allow_nan=False))
        else:
            typer.echo(headline)

    def warn(self, text: str) -> None:
        """Something that the user should know."""
        if text not in self.warned:
            self.warned.append(text)
            typer.secho(f"Warning: {text}", err=True, fg=typer.colors.YELLOW)


@contextmanager
def speaking(*, quiet: bool, as_json: bool) -> Iterator[Voice]:
    """Errors that a user can mend become a message and an exit code; others are faults of ours and keep their trace."""
    voice = Voice(quiet, as_json)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda message, category, *_: _pass_on(voice, message, category)
            yield voice
    except KeyboardInterrupt:
        typer.secho("Stopped.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _refuse(f"{where}{error.strerror}." if error.strerror else str(error), as_json)
    except (ValueError, RuntimeError) as error:
        if not type(error).__module__.startswith("counterpath"):
            raise
        _refuse(_for_a_shell(str(error)), as_json)


def _finite(content: Any) -> Any:
    """JSON has no NaN and no infinity; null says that there is no number."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _for_a_shell(text: str) -> str:
    for python, shell in IN_SHELL.items():
        text = re.sub(python, shell, text)
    return text


def _pass_on(voice: Voice, message: Warning | str, category: type[Warning]) -> None:
    if issubclass(category, UserWarning):
        voice.warn(_for_a_shell(str(message)))


def _refuse(message: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"error": message}, indent=2))
    else:
        typer.secho(message, err=True, fg=typer.colors.RED)
    raise typer.Exit(REFUSED) from None
