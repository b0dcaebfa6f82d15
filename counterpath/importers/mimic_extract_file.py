"""The tables of an hourly file of MIMIC-Extract: read, or refused with what was seen."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from counterpath.cohort.findings import CohortError, counted

if TYPE_CHECKING:
    import pandas as pd

STAY = ("subject_id", "hadm_id", "icustay_id")
HOUR = "hours_in"
VARIABLE, AGGREGATION = "LEVEL2", "Aggregation Function"
MEANS, WITH_OTHERS = "vitals_labs_mean", "vitals_labs"  # means alone, or among counts and deviations


class HourlyTables(NamedTuple):
    """What was measured (means of every hour), what was given, and who the patients are."""

    measured: pd.DataFrame
    given: pd.DataFrame
    people: pd.DataFrame


def read_hourly_tables(path: Path) -> HourlyTables:
    """All three; a layout that is not known is an error.

    Args:
        path: Of the file.
    """
    try:
        import pandas as pd
        import tables  # noqa: F401 (pandas reads HDF5 by it)
    except ImportError as error:
        raise ImportError(
            "Files of MIMIC-Extract need pandas and PyTables: pip install 'counterpath[mimic]'."
        ) from error
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        with pd.HDFStore(path, "r") as store, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about how old versions of pandas wrote the file
            keys = [key.removeprefix("/") for key in store.keys() if key.count("/") == 1]  # noqa: SIM118 (a store is no dictionary)
            means = WITH_OTHERS if WITH_OTHERS in keys and MEANS not in keys else MEANS
            found: dict[str, Any] = {key: store[key] for key in (means, "interventions", "patients") if key in keys}
    except Exception as error:  # pandas and PyTables have errors of their own for each way in which a file is none
        why = str(error).strip().splitlines()[-1].strip() if str(error).strip() else type(error).__name__
        raise CohortError(
            f"{path} is damaged, or not an HDF5 file that pandas can read ({why}). Copy it anew, or make it with "
            "MIMIC-Extract."
        ) from error
    for key in (means, "interventions", "patients"):
        if key not in found:
            raise _unknown(path, f"no table {key!r}, but {', '.join(map(repr, keys)) or 'none at all'}")
    _require_rows(path, found, means)
    return HourlyTables(_means(path, found[means], means), found["interventions"], found["patients"])


def _require_rows(path: Path, found: dict[str, Any], means: str) -> None:
    """One row for each hour of a stay, and one for each stay."""
    levels = {means: (*STAY, HOUR), "interventions": (*STAY, HOUR), "patients": STAY}
    for key, table in found.items():
        if not hasattr(table, "columns"):
            raise _unknown(path, f"in {key!r} a {type(table).__name__}, not a table")
        if tuple(table.index.names) != levels[key]:
            raise _unknown(path, f"in {key!r} an index of {', '.join(map(str, table.index.names))}")
        repeated = table.index.duplicated()
        if repeated.any():
            row = dict(zip(levels[key], table.index[repeated][0], strict=True))
            hour = f" for hour {row[HOUR]}" if HOUR in row else ""
            raise CohortError(
                f"{path} has in {key!r} {counted(int(repeated.sum()), 'row')} too many: stay {row[STAY[2]]} of subject "
                f"{row[STAY[0]]} has two{hour}. Remove them, or make the file anew."
            )


def _means(path: Path, measured: pd.DataFrame, key: str) -> pd.DataFrame:
    if list(measured.columns.names) != [VARIABLE, AGGREGATION]:
        seen = ", ".join(map(str, measured.columns.names))
        raise _unknown(path, f"in {key!r} columns by {seen}, not by {VARIABLE} and {AGGREGATION}")
    kinds = measured.columns.get_level_values(AGGREGATION)
    if "mean" not in kinds:
        raise _unknown(path, f"in {key!r} no means, but {', '.join(sorted(set(map(str, kinds))))}")
    means = measured.loc[:, kinds == "mean"]
    twice = means.columns[means.columns.duplicated()]
    if len(twice):
        raise _unknown(path, f"in {key!r} two columns of {twice[0][0]!r}")
    return means


def _unknown(path: Path, seen: str) -> CohortError:
    return CohortError(
        f"{path} has a layout that is not known: {seen}. Known is what MIMIC-Extract writes by default: "
        "`vitals_labs_mean` with variables grouped by LEVEL2, `interventions` and `patients`."
    )
