"""The same BNCDE as one would write it today with PyTorch, torchsde and torchcde: a peer to be measured beside.

Two solvers: `adaptive`, as published, along the derivative of a cubic Hermite spline; `fixed`, one Euler step per cell
of our grid with the increment over it, which is our own discretisation. Weights move with every cell in both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.peer_dynamics import HIDDEN, CellPath, Process, SplinePath, integrate
from bench.speed_data import PatientArrays

Solver = Literal["adaptive", "fixed"]

TRAIN_DRAWS, PREDICT_DRAWS = 10, 100
BATCH_SIZE = 64
LAW_RATE, READOUT_RATE = 1e-4, 1e-3
SMALLEST_STD = 1e-3


@dataclass(frozen=True, eq=False)
class PeerPatients:
    """Patients as tensors, with the paths that the solver follows; splines are fitted once, before training."""

    first: Tensor
    history: CellPath | SplinePath
    plan: CellPath | SplinePath
    targets: Tensor

    @classmethod
    def prepare(cls, arrays: PatientArrays, solver: Solver) -> PeerPatients:
        """The same arrays that our own network receives."""
        path = SplinePath.through if solver == "adaptive" else CellPath
        first, steps, durations, plan_steps, plan_durations, targets = map(torch.as_tensor, vars(arrays).values())
        return cls(first, path(steps, durations), path(plan_steps, plan_durations), targets)

    def of(self, patients: Tensor) -> PeerPatients:
        """Some of them."""
        return PeerPatients(
            self.first[patients], self.history.of(patients), self.plan.of(patients), self.targets[patients]
        )

    def __len__(self) -> int:
        return len(self.first)


class PeerBNCDE(nn.Module):
    """Linear embedding, encoder, decoder, and a linear head with (mean, softplus std)."""

    def __init__(self, known: int, channels: int, plan_channels: int, start_scale: float = 1.0):
        super().__init__()
        self.embedding = nn.Linear(known, HIDDEN)
        self.encoder = Process(channels, start_scale=start_scale)
        self.decoder = Process(plan_channels, start_scale=start_scale)
        self.head = nn.Linear(HIDDEN, 2)
        self.evaluations = 0

    @classmethod
    def sized_for(cls, arrays: PatientArrays, start_scale: float = 1.0) -> PeerBNCDE:
        """A network for these numbers of channels."""
        return cls(arrays.first.shape[-1], arrays.steps.shape[-1], arrays.plan_steps.shape[-1], start_scale)

    def forward(self, patients: PeerPatients, draws: int) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and std of the outcome (draws × patients), and the KL of the weights' paths."""
        start = self.embedding(patients.first).expand(draws, -1, -1)
        hidden, kl, evaluations = integrate(self.encoder, patients.history, self.encoder.initial(draws), start)
        hidden, plan_kl, more = integrate(self.decoder, patients.plan, self.decoder.initial(draws), hidden)
        self.evaluations = evaluations + more
        mean, raw_std = self.head(hidden).unbind(dim=-1)
        return mean, SMALLEST_STD + functional.softplus(raw_std), (kl + plan_kl).mean()

    def loss(self, patients: PeerPatients, outcomes: int, draws: int = TRAIN_DRAWS) -> Tensor:
        """−ELBO per outcome; the KL counts once for all `outcomes` of the data set."""
        mean, std, kl = self(patients, draws)
        log_density = -0.5 * ((patients.targets - mean) / std).square() - std.log() - 0.5 * math.log(2 * math.pi)
        return kl / outcomes - log_density.mean()


@dataclass(frozen=True)
class Step:
    """One step of training."""

    loss: float
    seconds: float
    evaluations: int


def train(model: PeerBNCDE, patients: PeerPatients, steps: int, *, seed: int = 0) -> Iterator[Step]:
    """So many steps with shuffled whole batches."""
    device = patients.first.device
    generator = torch.Generator(device).manual_seed(seed)
    law = [*model.encoder.parameters(), *model.decoder.parameters()]
    readout = [*model.embedding.parameters(), *model.head.parameters()]
    optimiser = torch.optim.Adam([{"params": law, "lr": LAW_RATE}, {"params": readout, "lr": READOUT_RATE}])
    per_epoch = max(len(patients) // BATCH_SIZE, 1)
    for number in range(steps):
        if number % per_epoch == 0:
            order = torch.randperm(len(patients), generator=generator, device=device)
        first = BATCH_SIZE * (number % per_epoch)
        began = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        loss = model.loss(patients.of(order[first : first + BATCH_SIZE]), len(patients))
        loss.backward()
        optimiser.step()
        yield Step(loss.item(), time.perf_counter() - began, model.evaluations)


@torch.no_grad()
def predict(
    model: PeerBNCDE, patients: PeerPatients, draws: int = PREDICT_DRAWS, at_once: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and std under each draw: draws × patients. Weights are drawn anew for every `at_once` patients."""
    parts = torch.arange(len(patients)).split(at_once or len(patients))
    outcomes = [model(patients.of(part), draws)[:2] for part in parts]
    mean, std = (torch.cat(each, dim=1).numpy() for each in zip(*outcomes, strict=True))
    return mean, std
