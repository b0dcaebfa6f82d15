"""How likely the observed volumes are under given parameters, by following log volume as a Gaussian between visits.

Daily map:        x' = x + log(m + ε),   m = 1 + ρ (ln K − x) − β_c C − (α d + β d²),   ε ~ N(0, σ²)
Continuous time:  radiotherapy multiplies by 1 − (α d + β d²) at once; then n Euler steps of length h,
                  x' = x + log(1 + h g + σ √h ε),   g = ρ (ln K − x) − β_c C

Between visits x is nearly Gaussian, since σ is small. The exception is a daily dose that nearly eradicates the tumour:
there m is as small as the noise, log(m + ε) is far from Gaussian, and the tumour may be gone. Such a day is kept as it
is (`pending`) until the next visit, and the rest of the way is integrated out by Gauss–Hermite quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.special import log_ndtr, ndtr

from counterpath.simulators.tumor_dynamics import CAPACITY_CM3, HALF_LIFE_DAYS, SMALLEST_CM3
from counterpath.simulators.tumor_patients import ALPHA_OVER_BETA
from counterpath.simulators.tumor_timeline import Timeline
from counterpath.simulators.tumor_truth import TumorSettings

LOG_CAPACITY = float(np.log(CAPACITY_CM3))
LOG_FLOOR = float(np.log(SMALLEST_CM3))
CRITICAL = 0.2  # a day's factor below this is too near the noise for a Gaussian of its log
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
AT_FLOOR = 1e-9  # in log volume

_Particles = Float64[np.ndarray, "patients particles"]


@dataclass(frozen=True, eq=False)
class TumorParameters:
    """Candidate parameters: many particles for each patient."""

    alpha: _Particles
    rho: _Particles
    chemo_kill: _Particles

    def radio_kill(self, dose_gy: np.ndarray) -> np.ndarray:
        """α d + β d², with β = α / 10."""
        return self.alpha * (dose_gy + dose_gy**2 / ALPHA_OVER_BETA)


def log_likelihood(
    timeline: Timeline, parameters: TumorParameters, settings: TumorSettings, rng: np.random.Generator
) -> _Particles:
    """Log density of each patient's visits after the first, for every particle (up to a constant per patient)."""
    follow = _follow_continuous if settings.continuous else _follow_daily
    return follow(timeline, parameters, settings, rng)


def _follow_continuous(
    timeline: Timeline, parameters: TumorParameters, settings: TumorSettings, rng: np.random.Generator
) -> _Particles:
    shape = parameters.rho.shape
    mean, var = np.broadcast_to(timeline.start[:, None], shape).copy(), np.zeros(shape)
    total = np.zeros(shape)
    for k in range(timeline.steps.shape[1]):
        steps = timeline.steps[:, k, None]
        mean, var = advance(
            mean, var, parameters, timeline.concentration[:, k, None], timeline.radio_gy[:, k, None], steps, settings
        )
        seen, x = timeline.seen[:, k, None], timeline.log_volume[:, k, None]
        total += np.where(seen, _gaussian_or_floor(x, mean, np.maximum(var, 1e-12)), 0.0)
        mean, var = np.where(seen, x, mean), np.where(seen, 0.0, var)
    return total


def advance(
    mean: np.ndarray,
    var: np.ndarray,
    parameters: TumorParameters,
    concentration: np.ndarray,
    radio_gy: np.ndarray,
    steps: np.ndarray,
    settings: TumorSettings,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of log volume after a segment of continuous time: n Euler steps in closed form."""
    h, noise = settings.step_days, settings.noise_std
    kill = parameters.radio_kill(radio_gy)
    mean = np.maximum(mean + np.log(np.maximum(1 - kill, 1e-300)), LOG_FLOOR)
    var = np.where((mean <= LOG_FLOOR) & (steps > 0), 0.0, var)
    stay = 1 - h * parameters.rho
    half = 0.5 ** (h / HALF_LIFE_DAYS)
    stay_n, half_n = stay**steps, half**steps
    chemo = parameters.chemo_kill * concentration
    # log(1 + z) = z − z²/2 per step, with z = h g + noise; g is taken along the undisturbed way.
    growth = parameters.rho * (LOG_CAPACITY - mean)
    squares = (
        steps * growth**2 - 2 * growth * chemo * (1 - half_n) / (1 - half) + chemo**2 * (1 - half_n**2) / (1 - half**2)
    )
    drift = -h * chemo * (stay_n - half_n) / (stay - half) - 0.5 * h**2 * squares - 0.5 * noise**2 * h * steps
    after = stay_n * mean + (1 - stay_n) * LOG_CAPACITY + drift
    spread = noise**2 * h * (1 - stay_n**2) / np.maximum(1 - stay**2, 1e-300)
    return np.maximum(after, LOG_FLOOR), stay_n**2 * var + spread


def _gaussian_or_floor(x: np.ndarray, mean: np.ndarray, var: np.ndarray) -> np.ndarray:
    """Log density at x, or the log mass of the floor where x lies on it."""
    std = np.sqrt(var)
    score = (x - mean) / std
    at_floor = x <= LOG_FLOOR + AT_FLOOR
    return np.where(at_floor, log_ndtr(score), -0.5 * score**2 - np.log(std))


@dataclass
class _Pending:
    """A day whose factor m + ε is near zero, not yet resolved by a visit."""

    here: np.ndarray  # particles that have such a day
    factor: np.ndarray  # its m
    nominal: np.ndarray  # the log factor that the mean has counted
    slope: np.ndarray  # how much of it is left in log volume
    log_alive: np.ndarray  # log probability that was used up when the particle was decided to be alive


def _follow_daily(
    timeline: Timeline, parameters: TumorParameters, settings: TumorSettings, rng: np.random.Generator
) -> _Particles:
    noise, shape = settings.noise_std, parameters.rho.shape
    mean, var = np.broadcast_to(timeline.start[:, None], shape).copy(), np.zeros(shape)
    total = np.zeros(shape)
    pending = _Pending(np.zeros(shape, bool), np.ones(shape), np.zeros(shape), np.ones(shape), np.zeros(shape))
    for k in range(timeline.steps.shape[1]):
        real = timeline.steps[:, k, None] > 0
        seen, x = timeline.seen[:, k, None] & real, timeline.log_volume[:, k, None]
        kill = parameters.radio_kill(timeline.radio_gy[:, k, None])
        chemo = parameters.chemo_kill * timeline.concentration[:, k, None]
        factor = 1 + parameters.rho * (LOG_CAPACITY - mean) - chemo - kill
        to_floor = np.exp(np.minimum(LOG_FLOOR - mean, 0.0))  # the factor below which the tumour is at the floor
        near = real & ((factor < CRITICAL) | (factor < to_floor + 6 * noise))
        safe = np.maximum(factor, CRITICAL)
        nominal = np.log(safe) - 0.5 * (noise / safe) ** 2
        keep = 1 - parameters.rho / safe
        alive = ndtr((factor - to_floor) / noise) if near.any() else np.ones(shape)
        if near.any():
            shifted = factor + noise * np.exp(-0.5 * ((factor - to_floor) / noise) ** 2) / (
                2.5066 * np.maximum(alive, 1e-12)
            )
            nominal = np.where(near, np.log(np.maximum(shifted, np.maximum(to_floor, 1e-12))), nominal)
            keep = np.where(near, 1.0, keep)
        # A visit resolves the day. From an exactly known volume the factor itself is normal.
        if seen.any():
            total += np.where(seen, _visit(x, mean, var, factor, to_floor, nominal, keep, near, pending, noise), 0.0)
        new_mean, new_var = mean + nominal, keep**2 * var + np.where(near, 0.0, (noise / safe) ** 2)
        slope = pending.slope * keep
        if near.any():
            hidden = near & ~seen
            # An earlier such day becomes an ordinary part of the spread.
            old = hidden & pending.here
            new_var = np.where(old, new_var + (slope * noise / np.maximum(pending.factor, 3 * noise)) ** 2, new_var)
            gone = hidden & (rng.random(shape) > alive)
            new_mean, new_var = np.where(gone, LOG_FLOOR, new_mean), np.where(gone, 0.0, new_var)
            starts = hidden & ~gone
            pending.factor = np.where(starts, factor, pending.factor)
            pending.nominal = np.where(starts, nominal, pending.nominal)
            pending.log_alive = np.where(starts, np.log(np.maximum(alive, 1e-300)), pending.log_alive)
            slope = np.where(starts, 1.0, slope)
            pending.here = (pending.here | starts) & ~gone
        pending.slope = np.where(real, slope, pending.slope)
        mean, var = np.where(real, new_mean, mean), np.where(real, new_var, var)
        mean, var = np.where(seen, x, mean), np.where(seen, 0.0, var)
        pending.here = pending.here & ~seen
    return total


def _visit(
    x: np.ndarray,
    mean: np.ndarray,
    var: np.ndarray,
    factor: np.ndarray,
    to_floor: np.ndarray,
    nominal: np.ndarray,
    keep: np.ndarray,
    near: np.ndarray,
    pending: _Pending,
    noise: float,
) -> np.ndarray:
    """Log density of seeing x at the end of a day."""
    at_floor = x <= LOG_FLOOR + AT_FLOOR
    ratio = np.exp(np.minimum(x - mean, 50.0))
    exact = -0.5 * ((ratio - factor) / noise) ** 2 - np.log(noise) + np.minimum(x - mean, 50.0)
    safe = np.maximum(factor, CRITICAL)
    # A second near-zero day finds the first one as an ordinary part of the spread.
    waiting = (pending.slope * noise / np.maximum(pending.factor, 3 * noise)) ** 2
    spread = np.sqrt(keep**2 * var + np.where(near, np.where(pending.here, waiting, 0.0), (noise / safe) ** 2))
    gap = x - mean - nominal
    score = gap / np.maximum(spread, 1e-12)
    plain = -0.5 * score**2 - np.log(np.maximum(spread, 1e-12))
    result = np.where(var == 0, exact, plain)
    hard = (near & (var > 0)) | pending.here
    if hard.any():
        # The near-zero day is today's, or one that waits since.
        m = np.where(near, factor, pending.factor)
        middle = np.where(near, nominal, pending.nominal)
        slope = np.where(near, 1.0, pending.slope * keep)
        used = np.where(near, 0.0, pending.log_alive)
        sums = np.zeros(result.shape)
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            y = middle + (gap - spread * node) / slope
            power = np.exp(np.minimum(y, 50.0))
            sums += weight * np.exp(-0.5 * ((power - m) / noise) ** 2 + np.minimum(y, 50.0)) / (noise * slope)
        result = np.where(hard, np.log(np.maximum(sums, 1e-300)) - used, result)
    return np.where(at_floor, log_ndtr((to_floor - factor) / noise), result)
