"""What every score asks of its inputs before it computes: aligned, finite, not empty."""

import numpy as np
from jaxtyping import Bool, Float, Real


def aligned_points(
    **arrays: Real[np.ndarray, "..."] | Bool[np.ndarray, "..."],
) -> list[Float[np.ndarray, "*points"]]:
    """Return the named arrays as float64 once they are finite, not empty and of one shape.

    Args:
        **arrays: arrays with one value per point; the names appear in error messages.
    """
    points = [finite(name, array) for name, array in arrays.items()]
    require_one_shape(**arrays)
    return points


def finite(name: str, array: Real[np.ndarray, "..."] | Bool[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return one array as float64 once it holds at least one value and no NaN or infinity.

    Args:
        name: how error messages call the array.
        array: any shape.
    """
    values = np.asarray(array, dtype=np.float64)
    require_values(name, values)
    bad = ~np.isfinite(values)
    if bad.any():
        raise ValueError(
            f"`{name}` has {bad.sum()} missing or infinite values, the first at index {_first(bad)}. "
            "Drop those points from every argument before scoring."
        )
    return values


def ordered_interval(
    lower: Real[np.ndarray, "*points"], upper: Real[np.ndarray, "*points"]
) -> tuple[Float[np.ndarray, "*points"], Float[np.ndarray, "*points"]]:
    """Return interval ends as float64 once no end is NaN and no upper end lies below its lower end.

    Infinite ends pass: an interval may be open on a side.

    Args:
        lower: lower ends.
        upper: upper ends.
    """
    require_one_shape(lower=lower, upper=upper)
    ends = []
    for name, end in (("lower", lower), ("upper", upper)):
        values = np.asarray(end, dtype=np.float64)
        require_values(name, values)
        missing = np.isnan(values)
        if missing.any():
            raise ValueError(
                f"`{name}` has {missing.sum()} missing values, the first at index {_first(missing)}. "
                "Drop those points from every argument before scoring."
            )
        ends.append(values)
    low, high = ends
    crossed = high < low
    if crossed.any():
        first = _first(crossed)
        raise ValueError(
            f"{crossed.sum()} intervals end before they start, the first at index {first}: "
            f"lower {low[first]:g}, upper {high[first]:g}. Check that `lower` and `upper` are not swapped."
        )
    return low, high


def require_values(name: str, array: np.ndarray) -> None:
    """Raise if an array is empty: a mean over nothing has no value.

    Args:
        name: how the error message calls the array.
        array: any shape.
    """
    if array.size == 0:
        raise ValueError(f"`{name}` is empty (shape {array.shape}). Give at least one point.")


def require_one_shape(**arrays: np.ndarray) -> None:
    """Raise if the named arrays differ in shape, as silent broadcasting would pair the wrong points.

    Args:
        **arrays: arrays with one value per point.
    """
    shapes = {name: np.shape(array) for name, array in arrays.items()}
    if len(set(shapes.values())) > 1:
        found = ", ".join(f"`{name}` {shape}" for name, shape in shapes.items())
        raise ValueError(f"Shapes differ: {found}. Give one value per point, in the same order.")


def require_draws_first(outcome: np.ndarray, **draws: np.ndarray) -> None:
    """Raise unless each array has one leading axis and then the shape of the outcome.

    Args:
        outcome: one value per point.
        **draws: arrays of draws or mixture components by points.
    """
    for name, array in draws.items():
        if array.ndim != outcome.ndim + 1 or array.shape[1:] != outcome.shape:
            wanted = ", ".join(["m", *map(str, outcome.shape)])
            raise ValueError(
                f"`{name}` has shape {array.shape} where `outcome` has {outcome.shape}. "
                f"Give it as ({wanted}), draws or components first; `np.moveaxis` moves them there."
            )


def require_level(level: float) -> None:
    """Raise unless a level lies strictly between 0 and 1.

    Args:
        level: nominal probability of an interval.
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` is {level}; it must lie between 0 and 1. For 95% pass level=0.95.")


def _first(flags: Bool[np.ndarray, "..."]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(flags)[0])
