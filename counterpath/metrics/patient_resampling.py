"""Draw patients with replacement: what another sample of patients might have shown."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Int

CHUNK_VALUES = 2**20  # drawn patients held at once: 8 MiB


def resampled_patients(patients: int, resamples: int, seed: int) -> Iterator[Int[np.ndarray, "some patients"]]:
    """Numbers of the patients drawn, one row per resample, in chunks of rows.

    Args:
        patients: number of patients, drawn as often as there are.
        resamples: number of rows in all.
        seed: seed of the drawing; two scores resampled with one seed meet the same patients.
    """
    if resamples < 1:
        raise ValueError(f"`resamples` is {resamples}. Pass at least 1; 2,000 is usual.")
    if patients < 2:
        raise ValueError("A bootstrap over patients needs at least two patients. Give more, or other labels.")
    rng = np.random.default_rng(seed)
    step = max(1, CHUNK_VALUES // patients)
    for start in range(0, resamples, step):
        # Indices with replacement are multinomial counts, drawn nine times faster at 10,000 patients.
        yield rng.integers(patients, size=(min(step, resamples - start), patients))
