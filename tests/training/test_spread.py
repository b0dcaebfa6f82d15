"""A run that is spread over devices ends where the same run on one device does."""

import subprocess
import sys

import jax
import numpy as np
import pytest
from small_models import fit_small, leaves_of, small_bncde, small_tecde

from counterpath.training import loop
from counterpath.training.spread import Spread

pytestmark = pytest.mark.slow  # models are compiled and trained

MODELS = {
    "members": lambda: small_bncde(posteriors=2, epochs=3),
    "draws": lambda: small_bncde(draws=2, epochs=3),
    "patients": lambda: small_tecde(epochs=3, dropout=0.2),
}
BY_VISITS = {
    "draws": lambda: small_bncde(draws=2, epochs=3, informative_sampling=True),
    "patients": lambda: small_tecde(epochs=3, informative_sampling=True),
}
CASES = [(over, made) for models in (MODELS, BY_VISITS) for over, made in models.items()]
NAMES = [*MODELS, *(f"{over}, weighted by their visits" for over in BY_VISITS)]


class OnOneDevice(Spread):
    """However many there are."""

    @classmethod
    def of(cls, shares):
        return Spread()


@pytest.mark.parametrize(("over", "made"), CASES, ids=NAMES)
def test_the_same_seed_gives_the_same_model_on_any_number_of_devices(over, made, monkeypatch):
    chosen = []

    class Watched(Spread):
        @classmethod
        def of(cls, shares):
            chosen.append(Spread.of(shares))
            return chosen[0]

    monkeypatch.setattr(loop, "Spread", Watched)
    together = fit_small(made())
    assert (chosen[0].over, chosen[0].mesh.size) == (over, 2)
    monkeypatch.setattr(loop, "Spread", OnOneDevice)
    alone = fit_small(made())
    for ours, theirs in zip(leaves_of(together), leaves_of(alone), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
    columns = ["log_likelihood", "kl", "validation"]
    np.testing.assert_allclose(together.history_[columns], alone.history_[columns], rtol=1e-3, atol=1e-4)


def test_what_is_asked_of_the_model_afterwards_is_on_one_device():
    for leaf in leaves_of_arrays(fit_small(MODELS["members"]())):
        assert len(leaf.devices()) == 1


def leaves_of_arrays(model):
    return [leaf for leaf in jax.tree.leaves(model.networks_) if isinstance(leaf, jax.Array)]


@pytest.mark.parametrize(
    ("shares", "over"),
    [
        ({"members": 2, "draws": 2, "patients": 4}, "members"),
        ({"members": 3, "draws": 2, "patients": 4}, "draws"),
        ({"members": 1, "draws": 1, "patients": 4}, "patients"),
    ],
)
def test_shares_are_equal_and_what_needs_least_talk_is_preferred(shares, over):
    spread = Spread.of(shares)
    assert (spread.over, spread.mesh.size) == (over, 2)


def test_where_nothing_can_be_shared_one_device_does_all():
    assert Spread.of({"members": 1, "draws": 3, "patients": 5}) == Spread()


CORES = """
import os
import jax
{before}
os.sched_getaffinity = lambda _: set(range(3))
from counterpath.training.spread import use_all_cores
use_all_cores()
print(len(jax.devices("cpu")))
"""


@pytest.mark.parametrize(
    ("before", "devices"),
    [("", 3), ("jax.devices()", 1), ('jax.config.update("jax_num_cpu_devices", 2)', 2)],
    ids=["first", "jax was in use", "the user has chosen"],
)
def test_cores_become_devices_where_jax_has_not_been_used(before, devices):
    code = CORES.format(before=before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == devices
