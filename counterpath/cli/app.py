"""The `counterpath` command."""

from __future__ import annotations

from typing import Annotated

import typer

from counterpath._version import __version__
from counterpath.cli.check import check
from counterpath.cli.effect import effect
from counterpath.cli.evaluate import evaluate
from counterpath.cli.explore import explore
from counterpath.cli.fit import fit
from counterpath.cli.import_records import import_records
from counterpath.cli.predict import predict
from counterpath.cli.report import report
from counterpath.cli.reproduce import reproduce
from counterpath.cli.simulate import simulate
from counterpath.cli.split import split
from counterpath.cli.tune import tune

app = typer.Typer(
    name="counterpath",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="What would happen to this patient under another treatment plan, and how sure are we?",
    epilog="Not a medical device: for research only.",
)


def _version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(f"counterpath {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Show it and stop.")
    ] = None,
) -> None:
    """Options of the command itself; typer shows the app's help."""


app.command("import")(import_records)
for command in (simulate, check, split, fit, predict, effect, evaluate, report, explore, tune, reproduce):
    app.command()(command)


def main() -> None:
    """Entry point of the console script."""
    app()
