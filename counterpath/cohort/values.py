"""A user's column becomes numbers: measurements as they are, categories as level numbers, gaps as NaN."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from jaxtyping import Float64

from counterpath.cohort.declared import DeclaredVariable
from counterpath.cohort.findings import CohortError, Finding, counted, name_patients
from counterpath.cohort.schema import DType, Variable

_LARGEST_EXACT = 2**53  # the largest range of integers that float64 holds without loss
EXACT = {"integer": pl.Int64, "boolean": pl.Boolean}
DECIMAL_COMMA = r"[+-]?\d+,\d+"


def read_variable(
    column: pl.Series, declared: DeclaredVariable, patients: pl.Series, *, numeric: bool = False
) -> tuple[Variable, Float64[np.ndarray, " rows"]]:
    """What the variable is, and its values.

    Args:
        column: The user's column.
        declared: What the user said of it; the rest is found here.
        patients: Whose row it is, for messages.
        numeric: Refuse categories (an outcome is a number).
    """
    name = declared.name
    dtype = _dtype(column, name)
    if dtype == "text":
        column = _without_blanks(column)
    if numeric and declared.kind == "categorical":
        raise _error("categorical_outcome", name, f"Outcome {name!r} is declared categorical.", "Outcomes are numbers.")
    unsaid = declared.kind is None and dtype == "text" and not numeric
    if declared.kind == "categorical" or (unsaid and not reads_as_numbers(column)):
        return _categories(column, declared, declared.dtype or dtype, patients)
    if dtype == "text":
        column, dtype = _numbers_from_text(column, name, patients, outcome=numeric), "float"
    values = column.cast(pl.Float64)
    if dtype == "integer" and (values.abs() > _LARGEST_EXACT).any():
        raise _error("huge_integer", name, f"{name!r} has integers above 2^53.", "If it is a code, store it as text.")
    if values.is_infinite().any():
        bad = patients.filter(values.is_infinite())
        raise _error(
            "infinite_value",
            name,
            f"{name_patients(bad, capital=True)}: {counted(len(bad), 'infinite value')} in {name!r}.",
            "Leave the cell empty where nothing was measured.",
            patients=bad,
        )
    for bound, outside, word in (
        (declared.lower, values < declared.lower if declared.lower is not None else None, "below"),
        (declared.upper, values > declared.upper if declared.upper is not None else None, "above"),
    ):
        if outside is not None and outside.any():
            bad = patients.filter(outside.fill_null(False))
            raise _error(
                "out_of_bounds",
                name,
                f"{name_patients(bad, capital=True)}: {counted(len(bad), 'value')} of {name!r} "
                f"{word} its bound {bound:g} (such as {values.filter(outside)[0]:g}).",
                "Mend the values, or widen the bound.",
                patients=bad,
            )
    variable = Variable(
        name=name,
        dtype=declared.dtype or dtype,
        unit=declared.unit,
        lower=declared.lower,
        upper=declared.upper,
    )
    return variable, values.fill_null(np.nan).to_numpy()


def _dtype(column: pl.Series, name: str) -> DType:
    dtype = column.dtype
    if dtype == pl.Boolean:
        return "boolean"
    if dtype.is_integer():
        return "integer"
    if dtype.is_float() or dtype.is_decimal() or dtype == pl.Null:
        return "float"
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    raise _error("bad_type", name, f"Column {name!r} is of type {dtype}.", "Make it numbers or text.")


def reads_as_numbers(column: pl.Series) -> bool:
    """Whether a column is numeric: numbers, or text of which at least half reads as numbers.

    The rest of such a text is then a mistake to be shown, not a category.
    """
    if column.dtype.is_numeric() or column.dtype == pl.Null:
        return True
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return False
    present = _without_blanks(column).drop_nulls()
    return present.str.strip_chars().cast(pl.Float64, strict=False).null_count() <= len(present) / 2


def _without_blanks(column: pl.Series) -> pl.Series:
    """Text in which nothing, or only white space, is a gap."""
    text = column.cast(pl.String)
    return text.set(text.str.strip_chars() == "", None)


def _numbers_from_text(column: pl.Series, name: str, patients: pl.Series, *, outcome: bool) -> pl.Series:
    text = column.cast(pl.String).str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
    unread = numbers.is_null() & text.is_not_null()
    if unread.any():
        bad, example = patients.filter(unread), text.filter(unread)[0]
        remedy = "Leave the cell empty where nothing was measured"
        if re.fullmatch(DECIMAL_COMMA, example):
            remedy = "Write decimals with a point"
        raise _error(
            "text_in_numbers",
            name,
            f"{name_patients(bad, capital=True)}: {counted(len(bad), 'value')} of {name!r} "
            f"{'is' if len(bad) == 1 else 'are'} text (such as {example!r}).",
            f"{remedy}." if outcome else f"{remedy}, or pass categorical=[{name!r}] for a covariate.",
            patients=bad,
        )
    return numbers


def _categories(
    column: pl.Series, declared: DeclaredVariable, dtype: DType, patients: pl.Series
) -> tuple[Variable, Float64[np.ndarray, " rows"]]:
    text = _whole_numbers_as_integers(column).cast(pl.String)
    levels = declared.levels if declared.levels is not None else _in_order(text.drop_nulls().unique())
    codes = text.replace_strict(list(levels), list(range(len(levels))), default=None, return_dtype=pl.Int64)
    unknown = codes.is_null() & text.is_not_null()
    if unknown.any():
        bad = patients.filter(unknown)
        raise _error(
            "unknown_level",
            declared.name,
            f"{name_patients(bad, capital=True)}: {text.filter(unknown)[0]!r} is not a level of {declared.name!r} "
            f"({', '.join(levels)}).",
            "Mend the value, or add the level.",
            patients=bad,
        )
    variable = Variable.model_validate(
        {
            "name": declared.name,
            "kind": "categorical",
            "levels": levels,
            "dtype": dtype,
            "unit": declared.unit,
        }
    )
    return variable, codes.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _whole_numbers_as_integers(column: pl.Series) -> pl.Series:
    """Codes as they were written: pandas makes integers with gaps into floats."""
    if not column.dtype.is_float():
        return column
    codes = column.fill_nan(None)
    is_whole = (codes == codes.round()) & (codes.abs() <= _LARGEST_EXACT)
    return codes.cast(pl.Int64) if is_whole.all() else codes


def _in_order(levels: pl.Series) -> tuple[str, ...]:
    """By number where all levels are numbers, so that 10 follows 2; otherwise as text."""
    numbers = levels.cast(pl.Float64, strict=False)
    if numbers.is_finite().fill_null(False).all():
        return tuple(pl.DataFrame({"number": numbers, "level": levels}).sort("number", "level")["level"])
    return tuple(levels.sort())


def _error(code: str, column: str, message: str, remedy: str, patients: pl.Series | None = None) -> CohortError:
    concerned = () if patients is None else tuple(patients.unique(maintain_order=True))
    count = 1 if patients is None else len(patients)
    return CohortError([Finding(code, "error", message, remedy, count, concerned, (column,))])


def as_column(variable: Variable, values: Float64[np.ndarray, " rows"]) -> pl.Series:
    """The way back: the values in the type that the user's column had, if it holds them.

    New patients, read like those a model learned from, may have fractions where those had none.
    """
    series = pl.Series(variable.name, values).fill_nan(None)
    if variable.kind == "categorical":
        series = series.cast(pl.Int64).replace_strict(
            list(range(len(variable.levels))), list(variable.levels), default=None, return_dtype=pl.String
        )
        series = pl.Series(variable.name, series)
        if variable.dtype == "boolean":
            return series == "true"
    if variable.dtype in EXACT:
        exact = series.cast(EXACT[variable.dtype], strict=False)
        return exact if variable.kind == "categorical" or exact.cast(pl.Float64).equals(series) else series
    return series.cast(pl.Float64) if variable.dtype == "float" else series
