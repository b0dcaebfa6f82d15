"""`counterpath check`: a verdict on a folder of tables before any training."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpath.cli.voice import speaking

if TYPE_CHECKING:
    from counterpath.cohort import CheckReport, Cohort, CohortError, Finding

READY, NOT_READY = 0, 1
ZONES = "Give all times one zone, if that was not meant."
# For a finding whose remedy is an argument of Python: that argument, and the key that says the same in a folder.
IN_SCHEMA = {
    "duplicate_times": ("duplicates", '[repairs] duplicates = "mean"'),
    "record_after_follow_up": ("after_follow_up", '[repairs] after_follow_up = "drop"'),
    "treatment_after_follow_up": ("after_follow_up", '[repairs] after_follow_up = "drop"'),
    "near_coincident": ("merge_within", "[repairs] merge_within = {value}"),
    "text_in_numbers": ("categorical", 'kind = "categorical" for {names}'),
}


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
    with speaking(quiet=quiet, as_json=as_json):
        from counterpath.cohort import CohortError, draft_schema, read_cohort

        try:
            if draft:
                path = draft_schema(folder, outcome=outcome)
                said = f"Wrote {path}. Read it once, mend what is wrong, then: counterpath check {folder}"
                typer.echo(json.dumps({"result": said, "schema": str(path)}, indent=2) if as_json else said)
                return
            if outcome is not None:
                raise typer.BadParameter("--outcome goes with --draft; later it stands in schema.toml.")
            with warnings.catch_warnings(record=True) as raised:
                warnings.simplefilter("always")  # those of a repair are findings of the report
                cohort = read_cohort(folder)
            report = _with_zones(cohort.check(lookback=lookback, cells=cells), raised)
        except CohortError as error:
            _refuse(error, as_json=as_json)
            raise typer.Exit(NOT_READY) from None
        _show(cohort, report, as_json=as_json, quiet=quiet)
        raise typer.Exit(READY if report.ok else NOT_READY)


def _with_zones(report: CheckReport, raised: list[warnings.WarningMessage]) -> CheckReport:
    """The report with what was said of time zones, which no cohort keeps."""
    from counterpath.cohort import Finding, TimeZoneWarning

    said = dict.fromkeys(str(warning.message) for warning in raised if issubclass(warning.category, TimeZoneWarning))
    known = {finding.message for finding in report.findings}
    zones = [Finding("time_zones", "warning", message, ZONES) for message in said if message not in known]
    findings = (*report.of("error"), *report.of("warning"), *zones, *report.of("note"))
    return replace(report, findings=findings)


def _for_a_folder(finding: Finding) -> Finding:
    """The same with a remedy for `schema.toml` beside the argument of Python."""
    argument, key = IN_SCHEMA.get(finding.code, ("", ""))
    value = re.search(rf"{argument}=(\S*\w)", finding.remedy) if argument else None
    if value is None:
        return finding
    remedy = key.format(value=value[1], names=", ".join(repr(name) for name in finding.columns))
    return replace(finding, remedy=f"{finding.remedy} In schema.toml: {remedy}")


def _refuse(error: CohortError, *, as_json: bool) -> None:
    from counterpath.cohort import CohortError

    if as_json:
        typer.echo(
            json.dumps(
                {"error": str(error), "verdict": "Not ready.", "findings": [asdict(f) for f in error.findings]},
                indent=2,
            )
        )
    else:
        said = CohortError([_for_a_folder(finding) for finding in error.findings])
        typer.secho(str(said), err=True, fg=typer.colors.RED)


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
    report = replace(report, findings=tuple(_for_a_folder(finding) for finding in report.findings))
    console.print(str(report), highlight=False, markup=False)
