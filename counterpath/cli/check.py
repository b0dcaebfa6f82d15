"""`counterpath check`: a verdict on a folder of tables before any training."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from counterpath.cohort import CheckReport, Cohort

READY, NOT_READY = 0, 1


def check(
    folder: Annotated[Path, typer.Argument(help="With observations, treatments and static as CSV or Parquet.")],
    draft: Annotated[
        bool, typer.Option("--draft", help="Write a first schema.toml from the tables, to be read.")
    ] = False,
    outcome: Annotated[str | None, typer.Option(help="With --draft: the variable to be predicted.")] = None,
    lookback: Annotated[float | None, typer.Option(help="Window that a model would see; default: all.")] = None,
    cells: Annotated[int, typer.Option(help="Solver cells that a model would have.")] = 64,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False,
) -> None:
    """Read a folder of tables and say whether a model can be fitted to it.

    Exit code 0: ready (warnings are counted); 1: something must be mended.

    Example: `counterpath check --draft ward/ --outcome pressure`, read ward/schema.toml, then `counterpath check ward/`
    """
    from counterpath.cohort import CohortError, draft_schema, read_cohort

    try:
        if draft:
            path = draft_schema(folder, outcome=outcome)
            typer.echo(f"Wrote {path}. Read it once, mend what is wrong, then: counterpath check {folder}")
            return
        if outcome is not None:
            raise typer.BadParameter("--outcome goes with --draft; later it stands in schema.toml.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # each is a finding of the report
            cohort = read_cohort(folder)
        report = cohort.check(lookback=lookback, cells=cells)
    except CohortError as error:
        _refuse(error, as_json=as_json)
        raise typer.Exit(NOT_READY) from None
    _show(cohort, report, as_json=as_json, quiet=quiet)
    raise typer.Exit(READY if report.ok else NOT_READY)


def _refuse(error: Exception, *, as_json: bool) -> None:
    from counterpath.cohort import CohortError

    if as_json and isinstance(error, CohortError):
        typer.echo(json.dumps({"verdict": "Not ready.", "findings": [asdict(f) for f in error.findings]}, indent=2))
    else:
        typer.secho(str(error), err=True, fg=typer.colors.RED)


def _show(cohort: Cohort, report: CheckReport, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        findings = [asdict(finding) for finding in report.findings]
        typer.echo(json.dumps({"verdict": report.verdict, "patients": len(cohort), "findings": findings}, indent=2))
        return
    if quiet:
        typer.echo(report.verdict)
        return
    from rich.console import Console

    from counterpath.cli.tables import description_table

    console = Console()
    console.print(str(cohort), highlight=False, markup=False)
    console.print()
    console.print(description_table(cohort))
    console.print()
    console.print(str(report), highlight=False, markup=False)
