"""The peer's equations, for torchsde and torchcde.

The weights of a vector field are shared by all patients of a batch, so each draw is one SDE whose state is

    [ω, Z of every patient, running KL],   dω = (u − ω) dt + σ dB,   dZ = f(Z, t | ω) dX,   dKL = ½ |u / σ|² dt
"""

from __future__ import annotations

from types import MappingProxyType

import torch
import torchcde
import torchsde
from torch import Tensor, nn
from torch.nn import functional

HIDDEN = 8
FIELD_WIDTHS = (128, 128)
DRIFT_WIDTHS = (16, 64, 64, 64, 16)
DIFFUSION = 1e-3
RTOL, ATOL, FIRST_STEP = 1e-5, 1e-4, 1e-3


class Process(nn.Module):
    """A vector field f(Z, t | ω) and the law of its weights ω, for all draws and patients at once."""

    def __init__(
        self,
        channels: int,
        *,
        hidden: int = HIDDEN,
        field_widths: tuple[int, ...] = FIELD_WIDTHS,
        drift_widths: tuple[int, ...] = DRIFT_WIDTHS,
        start_scale: float = 1.0,
    ):
        super().__init__()
        self.channels, self.hidden = channels, hidden
        sizes = (hidden + 1, *field_widths, hidden * channels)
        self.shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
        self.parts = [number for out, into in self.shapes for number in (out * into, out)]
        self.size = sum(self.parts)
        start = [part for out, into in self.shapes for part in (torch.randn(out * into) / into**0.5, torch.zeros(out))]
        self.initial_mean = nn.Parameter(start_scale * torch.cat(start))
        layers: list[nn.Module] = []
        for into, out in zip((self.size + 1, *drift_widths[:-1]), drift_widths, strict=True):
            layers += [nn.Linear(into, out), nn.ReLU()]
        last = nn.Linear(drift_widths[-1], self.size)
        nn.init.zeros_(last.weight)  # before any data the posterior moves like the prior
        nn.init.zeros_(last.bias)
        self.drift = nn.Sequential(*layers, last)

    def initial(self, draws: int) -> Tensor:
        """ω_0, one per draw."""
        return self.initial_mean + DIFFUSION * torch.randn(draws, self.size)

    def control(self, weights: Tensor, clock: Tensor) -> Tensor:
        """u(ω, t): by how much the drift differs from the prior's."""
        return self.drift(torch.cat([weights, clock.expand(len(weights), 1)], dim=1))

    def field(self, hidden: Tensor, clock: Tensor, weights: Tensor) -> Tensor:
        """f(Z, t | ω): draws × patients × hidden × channels."""
        flat = weights.split(self.parts, dim=1)
        signal = torch.cat([hidden, clock.expand(*hidden.shape[:2], 1)], dim=2)
        for i, (out, into) in enumerate(self.shapes):
            matrix, bias = flat[2 * i].unflatten(1, (out, into)), flat[2 * i + 1]
            signal = torch.baddbmm(bias[:, None], signal, matrix.mT)
            signal = signal.relu() if i + 1 < len(self.shapes) else signal.tanh()
        return signal.unflatten(2, (self.hidden, self.channels))


class CellPath:
    """Increments over the grid's cells. Time counts cells, so that a step of 1 is a cell, however long it lasts."""

    solver = MappingProxyType({"dt": 1.0})

    def __init__(self, steps: Tensor, durations: Tensor):
        self.steps, self.durations = steps, durations
        self.clocks = durations.cumsum(dim=0) - durations
        self.end, self.brownian_step = float(len(durations)), 1.0

    def of(self, patients: Tensor) -> CellPath:
        """The paths of some patients."""
        return CellPath(self.steps[patients], self.durations)

    def clock(self, time: Tensor) -> tuple[Tensor, Tensor]:
        """The clock, and how fast it runs."""
        cell = min(int(time), len(self.durations) - 1)
        return self.clocks[cell], self.durations[cell]

    def velocity(self, time: Tensor) -> Tensor:
        """dX/dt: patients × channels."""
        return self.steps[:, min(int(time), len(self.durations) - 1)]


class SplinePath:
    """A cubic Hermite spline with backward differences through X at the grid's edges. Time is the clock."""

    solver = MappingProxyType({"dt": FIRST_STEP, "adaptive": True, "rtol": RTOL, "atol": ATOL})
    end, brownian_step = 1.0, None

    def __init__(self, coefficients: Tensor, edges: Tensor):
        self.coefficients, self.edges = coefficients, edges
        self.spline = torchcde.CubicSpline(coefficients, edges)

    @classmethod
    def through(cls, steps: Tensor, durations: Tensor) -> SplinePath:
        """The spline whose increments over the cells are `steps`."""
        knots = functional.pad(steps.cumsum(dim=1), (0, 0, 1, 0))
        edges = functional.pad(durations.cumsum(dim=0), (1, 0))
        return cls(torchcde.hermite_cubic_coefficients_with_backward_differences(knots, edges), edges)

    def of(self, patients: Tensor) -> SplinePath:
        """The paths of some patients."""
        return SplinePath(self.coefficients[patients], self.edges)

    def clock(self, time: Tensor) -> tuple[Tensor, Tensor]:
        """The clock, and how fast it runs."""
        return time, torch.ones_like(time)

    def velocity(self, time: Tensor) -> Tensor:
        """dX/dt: patients × channels."""
        return self.spline.derivative(time)


class JointSDE:
    """What torchsde integrates: weights, hidden states of all patients and running KL, side by side."""

    sde_type, noise_type = "ito", "additive"

    def __init__(self, process: Process, path: CellPath | SplinePath, patients: int):
        self.process, self.path = process, path
        self.parts = [process.size, patients * process.hidden, 1]
        self.evaluations = 0

    def f(self, time: Tensor, state: Tensor) -> Tensor:
        """The drift."""
        self.evaluations += 1
        weights, flat, _ = state.split(self.parts, dim=1)
        clock, pace = self.path.clock(time)
        control = self.process.control(weights, clock)
        field = self.process.field(flat.unflatten(1, (-1, self.process.hidden)), clock, weights)
        hidden = torch.einsum("dphc,pc->dph", field, self.path.velocity(time))
        kl_rate = 0.5 / DIFFUSION**2 * control.square().sum(dim=1, keepdim=True)
        return torch.cat([(control - weights) * pace, hidden.flatten(1), kl_rate * pace], dim=1)

    def g_prod(self, time: Tensor, state: Tensor, noise: Tensor) -> Tensor:
        """σ dB for the weights; hidden states and KL have no noise of their own."""
        _, pace = self.path.clock(time)
        return functional.pad(DIFFUSION * pace.sqrt() * noise, (0, sum(self.parts[1:])))


def integrate(
    process: Process,
    path: CellPath | SplinePath,
    weights: Tensor,
    hidden: Tensor,
    brownian: torchsde.BaseBrownian | None = None,
) -> tuple[Tensor, Tensor, int]:
    """Z at the path's end (draws × patients × hidden), KL (draws), and how often the drift was evaluated."""
    draws, patients = hidden.shape[:2]
    sde = JointSDE(process, path, patients)
    if brownian is None:
        brownian = torchsde.BrownianInterval(
            0.0,
            path.end,
            size=(draws, process.size),
            dt=path.brownian_step,
            device=weights.device,
            entropy=int(torch.randint(2**31, ())),  # torchsde would take it from numpy's global state
        )
    start = torch.cat([weights, hidden.flatten(1), weights.new_zeros(draws, 1)], dim=1)
    end = torchsde.sdeint(sde, start, [0.0, path.end], bm=brownian, method="euler", **path.solver)[-1]
    _, flat, kl = end.split(sde.parts, dim=1)
    return flat.unflatten(1, (patients, -1)), kl[:, 0], sde.evaluations
