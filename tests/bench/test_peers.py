import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the peers need the `bench` extra")
torchsde = pytest.importorskip("torchsde", reason="the peers need the `bench` extra")

import jax
import jax.numpy as jnp

from bench.peer_dynamics import DIFFUSION, CellPath, Process, SplinePath, integrate
from bench.peers import PeerBNCDE, PeerPatients, predict, train
from bench.speed_data import PatientArrays
from counterpath.dynamics import VectorField, WeightLaw, brownian_increments, solve, weight_paths
from counterpath.dynamics.weight_law import Drift

HIDDEN, CHANNELS, PATIENTS, CELLS = 3, 2, 4, 5
FIELD_WIDTHS, DRIFT_WIDTHS = (7, 6), (5, 4)


class GivenNoise(torchsde.BaseBrownian):
    """Brownian increments over whole cells that somebody else has drawn."""

    dtype, device, levy_area_approximation = torch.float32, torch.device("cpu"), "none"

    def __init__(self, increments):
        self.increments = increments

    @property
    def shape(self):
        return self.increments.shape[1:]

    def __call__(self, ta, tb=None, return_U=False, return_A=False):  # noqa: N803  # torchsde passes them by these names
        assert float(tb) - float(ta) == 1.0
        return self.increments[int(ta)]

    def __repr__(self):
        return "GivenNoise"


def our_law(field, key):
    mean_key, drift_key, last_key = jax.random.split(key, 3)
    drift = Drift(field.fan_in_std(), DRIFT_WIDTHS, key=drift_key)
    matrix, bias = drift.layers[-1]
    moving = (0.1 * jax.random.normal(last_key, matrix.shape), bias + 0.05)
    object.__setattr__(drift, "layers", [*drift.layers[:-1], moving])
    return WeightLaw(
        field.usual_start(mean_key), None, field.fan_in_std(), drift, jnp.asarray(DIFFUSION), jnp.asarray(1.0)
    )


def same_process(field, law):
    """The peer with our numbers; our drift network works in units of the weights' scale, which its layers take over."""
    process = Process(CHANNELS, hidden=HIDDEN, field_widths=FIELD_WIDTHS, drift_widths=DRIFT_WIDTHS)
    linear = [layer for layer in process.drift if isinstance(layer, torch.nn.Linear)]
    std = np.append(law.drift.input_std, 1.0)
    with torch.no_grad():
        for i, (layer, (matrix, bias)) in enumerate(zip(linear, law.drift.layers, strict=True)):
            into = 1 / std if i == 0 else 1.0
            out = std[:-1] if i == len(linear) - 1 else np.ones(len(bias))
            layer.weight.copy_(torch.as_tensor(np.asarray(matrix) * into * out[:, None]))
            layer.bias.copy_(torch.as_tensor(np.asarray(bias) * out))
    assert process.size == field.size
    return process


# `Layers` names the axes of all layers alike, so the shape checker refuses layers of unequal sizes, now and then.
@pytest.mark.usefixtures("checker_off")
def test_with_the_same_noise_a_fixed_peer_has_our_hidden_states_and_kl():
    rng = np.random.default_rng(0)
    durations = rng.dirichlet(np.ones(CELLS)).astype(np.float32)
    steps = rng.normal(size=(PATIENTS, CELLS, CHANNELS)).astype(np.float32)
    hidden = rng.normal(size=(PATIENTS, HIDDEN)).astype(np.float32)
    field = VectorField(HIDDEN, CHANNELS, FIELD_WIDTHS)
    law = our_law(field, jax.random.key(1))
    keys = jax.random.split(jax.random.key(2), 2)

    clocks, last = jnp.cumsum(durations) - durations, jnp.full((PATIENTS, 1), CELLS - 1)
    paths, kls = weight_paths(law, keys, jnp.asarray(durations))

    def of_draw(path):
        return solve(field, path, jnp.asarray(hidden), clocks, jnp.asarray(steps), last, steps[:, -1:])[:, 0]

    ours = jax.vmap(of_draw, in_axes=(paths.draw_axes,))(paths)

    # The peer's time counts cells, and each cell's noise is stretched to its duration.
    path_keys = jnp.stack([jax.random.split(key)[1] for key in keys])
    noise = brownian_increments(path_keys, jnp.asarray(durations), field.size) / jnp.sqrt(durations)[:, None, None]
    peer_hidden, peer_kl, evaluations = integrate(
        same_process(field, law),
        CellPath(torch.as_tensor(steps), torch.as_tensor(durations)),
        torch.as_tensor(np.array(paths.start)),
        torch.as_tensor(np.broadcast_to(hidden, (2, *hidden.shape)).copy()),
        GivenNoise(torch.as_tensor(np.array(noise))),
    )

    assert evaluations == CELLS + 1  # torchsde looks at the drift once before it starts
    np.testing.assert_allclose(peer_hidden.detach(), ours, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(peer_kl.detach(), kls, rtol=1e-4)
    assert min(kls) > 1.0


def small_arrays(patients):
    rng = np.random.default_rng(3)
    steps = rng.normal(size=(patients, 6, 3)).astype(np.float32)
    return PatientArrays(
        rng.normal(size=(patients, 4)).astype(np.float32),
        steps,
        np.full(6, 1 / 6, dtype=np.float32),
        rng.normal(size=(patients, 1, 2)).astype(np.float32),
        np.ones(1, dtype=np.float32),
        (2.0 + steps.sum(axis=(1, 2))).astype(np.float32),
    )


def test_the_spline_has_the_increments_of_the_cells():
    arrays = small_arrays(5)
    path = SplinePath.through(torch.as_tensor(arrays.steps), torch.as_tensor(arrays.durations))
    values = path.spline.evaluate(path.edges)
    np.testing.assert_allclose(values.diff(dim=1), arrays.steps, atol=1e-5)


@pytest.mark.parametrize("solver", ["fixed", "adaptive"])
def test_a_peer_learns_and_predicts(solver):
    torch.manual_seed(0)
    arrays = small_arrays(128)
    patients = PeerPatients.prepare(arrays, solver)
    model = PeerBNCDE.sized_for(arrays, start_scale=0.03)
    losses = [step.loss for step in train(model, patients, 24 if solver == "fixed" else 4)]
    assert np.isfinite(losses).all()
    if solver == "fixed":
        assert np.mean(losses[-4:]) < 0.8 * np.mean(losses[:4])
    mean, std = predict(model, patients, draws=3)
    assert mean.shape == std.shape == (3, 128)
    assert (std > 0).all()
    assert not np.allclose(mean[0], mean[1])
