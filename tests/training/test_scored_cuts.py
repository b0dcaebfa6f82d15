import jax.numpy as jnp
import numpy as np
from small_networks import small_inputs

from counterpath.models import Targets
from counterpath.training import Examples
from counterpath.training.scored_cuts import spread_cuts


def test_a_validation_patient_counts_by_outcomes_and_not_by_how_few_cuts_there_are():
    """One has eight candidates, of which four are scored; the other has one, which must not count four times."""
    number = np.array([8, 1])
    real = (np.arange(8) < number[:, None])[:, :, None, None]
    shares = jnp.asarray(np.where(real, 1.0 / number[:, None, None, None], 0.0), dtype=jnp.float32)  # one outcome each
    targets = Targets(jnp.zeros((2, 8, 1, 1)), shares, jnp.asarray(number, dtype=jnp.int32))
    spread = spread_cuts(Examples(small_inputs(2, cuts=8, horizons=1), targets, jnp.asarray(2.0)), 4)
    np.testing.assert_allclose(spread.targets.shares.sum(axis=(1, 2, 3)), [1.0, 1.0], rtol=1e-6)
