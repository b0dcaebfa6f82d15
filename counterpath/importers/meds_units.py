"""Values of one variable in one unit, through all files of a MEDS data set."""

from __future__ import annotations

from collections import Counter, defaultdict

import polars as pl

from counterpath.cohort.findings import CohortError, counted
from counterpath.importers.meds_spec import Given, Measured


class Units:
    """The units met so far, by variable or treatment: a second one that nothing converts is an error, in any file."""

    def __init__(self) -> None:
        self._met: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def converted(self, rows: pl.DataFrame, name: str, own: Measured | Given) -> pl.DataFrame:
        """With values in one unit, and `is_wanted`: whether the spec does not leave the row's unit out."""
        there = rows.filter(pl.col("unit").is_not_null()).group_by("unit").len().sort("len", "unit", descending=True)
        met = self._met[name]
        met.update(dict(there.iter_rows()))
        unconverted = [unit for unit, _ in met.most_common() if unit not in own.units]
        usual = own.unit if own.unit is not None else next(iter(unconverted), None)
        unknown = [unit for unit in unconverted if unit != usual]
        if unknown:
            counts = " and ".join(f"{unit} ({counted(number, 'row')})" for unit, number in met.most_common())
            raise CohortError(
                f"{name} has values in {counts}, and the spec does not say how {unknown[0]} becomes {usual}. Add "
                f'units = {{ "{unknown[0]}" = … }}: how many {usual} one {unknown[0]} is, or false to leave such rows '
                "out; or choose other codes."
            )
        factors = {unit: factor for unit, factor in own.units.items() if factor is not False}
        unwanted = [unit for unit, factor in own.units.items() if factor is False]
        factor = pl.col("unit").replace_strict(factors, default=1.0, return_dtype=pl.Float64)
        return rows.with_columns(
            pl.col("numeric_value") * factor,
            is_wanted=~pl.col("unit").is_in(unwanted).fill_null(value=False),
        )
