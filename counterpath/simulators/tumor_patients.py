"""Who the patients are: response parameters, stage, and the tumour on day 0 (Geng et al. 2017; Lim et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64
from scipy.stats import truncnorm

ALPHA_MEAN, ALPHA_STD = 0.0398, 0.168  # radiotherapy, per Gy
RHO_MEAN, RHO_STD = 7e-5, 7.23e-3  # growth, per day
ALPHA_RHO_CORRELATION = 0.87
CHEMO_MEAN, CHEMO_STD = 0.028, 0.0007  # chemotherapy, per unit of concentration and day
ALPHA_OVER_BETA = 10.0
SUBGROUPS = ("A", "B", "C")
SUBGROUP_GAIN = 0.1  # of the mean: A responds better to radiotherapy, C to chemotherapy

# Log-mean and log-std of the diameter, its bounds in cm, and how many patients have the stage.
STAGES = {
    "I": (1.72, 4.70, 0.3, 5.0, 1432),
    "II": (1.96, 1.63, 0.3, 13.0, 128),
    "IIIA": (1.91, 9.40, 0.3, 13.0, 1306),
    "IIIB": (2.76, 6.87, 0.3, 13.0, 7248),
    "IV": (3.86, 8.82, 0.3, 13.0, 12840),
}


def volume_cm3(diameter_cm: Float64[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
    """Volume of a sphere."""
    return np.pi / 6 * diameter_cm**3


def diameter_cm(volume_cm3: Float64[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
    """Diameter of a sphere."""
    return np.cbrt(6 / np.pi * volume_cm3)


@dataclass(frozen=True, eq=False)
class TumorPatients:
    """What nobody records of a patient, and the subgroup, which is recorded.

    Attributes:
        alpha: Cell kill of radiotherapy per Gy; the quadratic term is a tenth of it.
        rho: Growth per day.
        chemo_kill: Cell kill per unit of concentration and day.
        subgroup: 0, 1 or 2.
        stage: Number of the stage.
        initial_volume_cm3: On day 0.
    """

    alpha: Float64[np.ndarray, " patients"]
    rho: Float64[np.ndarray, " patients"]
    chemo_kill: Float64[np.ndarray, " patients"]
    subgroup: Int64[np.ndarray, " patients"]
    stage: Int64[np.ndarray, " patients"]
    initial_volume_cm3: Float64[np.ndarray, " patients"]

    def __len__(self) -> int:
        return len(self.alpha)

    @property
    def beta(self) -> Float64[np.ndarray, " patients"]:
        """Cell kill of radiotherapy per Gy²."""
        return self.alpha / ALPHA_OVER_BETA

    def radio_kill(self, dose_gy: Float64[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
        """α d + β d²: the share that a fraction kills."""
        return self.alpha * dose_gy + self.beta * dose_gy**2


def draw_patients(number: int, rng: np.random.Generator) -> TumorPatients:
    """Patients from the prior: α and ρ jointly normal and both positive, everything else independent."""
    alpha, rho = _alpha_and_rho(number, rng)
    chemo_kill = _positive_normal(CHEMO_MEAN, CHEMO_STD, number, rng)
    subgroup = rng.integers(0, len(SUBGROUPS), number)
    counts = np.array([stage[-1] for stage in STAGES.values()], dtype=float)
    stage = rng.choice(len(STAGES), number, p=counts / counts.sum())
    return TumorPatients(
        alpha=alpha + radio_shift(subgroup),
        rho=rho,
        chemo_kill=chemo_kill + chemo_shift(subgroup),
        subgroup=subgroup,
        stage=stage,
        initial_volume_cm3=volume_cm3(_diameters(stage, rng)),
    )


def radio_shift(subgroup: Int64[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
    """What subgroup A has on top of the common α."""
    return np.where(subgroup == 0, SUBGROUP_GAIN * ALPHA_MEAN, 0.0)


def chemo_shift(subgroup: Int64[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
    """What subgroup C has on top of the common cell kill of chemotherapy."""
    return np.where(subgroup == 2, SUBGROUP_GAIN * CHEMO_MEAN, 0.0)


def _alpha_and_rho(number: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    covariance = ALPHA_RHO_CORRELATION * ALPHA_STD * RHO_STD
    drawn = np.empty((0, 2))
    while len(drawn) < number:  # redrawn until both are positive; about 42% are
        more = rng.multivariate_normal(
            [ALPHA_MEAN, RHO_MEAN],
            [[ALPHA_STD**2, covariance], [covariance, RHO_STD**2]],
            size=int(2.6 * (number - len(drawn))) + 16,
        )
        drawn = np.concatenate([drawn, more[(more > 0).all(axis=1)]])
    return drawn[:number, 0], drawn[:number, 1]


def _positive_normal(mean: float, std: float, number: int, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(truncnorm.rvs(-mean / std, np.inf, loc=mean, scale=std, size=number, random_state=rng))


def _diameters(stage: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Log-normal, truncated to the stage's bounds."""
    mean, std, low, high = (np.array(column) for column in list(zip(*STAGES.values(), strict=True))[:4])
    mean, std, low, high = mean[stage], std[stage], np.log(low[stage]), np.log(high[stage])
    logs = truncnorm.rvs(
        (low - mean) / std, (high - mean) / std, loc=mean, scale=std, size=len(stage), random_state=rng
    )
    return np.exp(np.asarray(logs))
