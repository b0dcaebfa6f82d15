"""What `engine_speed` measured, as tables and as a page."""

from __future__ import annotations

from rich.table import Table

from bench.competitors import ADAPTIVE, BATCH_SIZE, BOTH, CRPS_MULTIPLE, EPOCH_PATIENTS, OURS, PEERS
from bench.tables import markdown, screen_table


def rows(content: dict, cores: int) -> list[list[str]]:
    """Competitor; step by the clock and by the processor, epoch, ratio, peak; prediction, ratio, peak."""
    measured = content["by_cores"][str(cores)]
    train, predict = measured["train"], measured["predict"]
    return [
        [
            name + (f", {run['threads']} and {told['threads']} threads" if name in PEERS and cores > 1 else ""),
            f"{run['step_s']:.3f}",
            f"{run['step_cpu_s']:.3f}",
            f"{run['step_s'] * content['steps_per_epoch']:.0f}",
            f"{run['step_s'] / train[OURS]['step_s']:.2f}",
            f"{run['peak_gb']:.2f}",
            f"{told['seconds']:.1f}",
            f"{told['seconds'] / predict[OURS]['seconds']:.2f}",
            f"{told['peak_gb']:.2f}",
        ]
        for (name, run), told in zip(train.items(), predict.values(), strict=True)
    ]


def learning_rows(content: dict) -> list[list[str]]:
    """Competitor; time, ratio, epochs, CRPS, peak."""
    learning = content["learning"]
    ours = learning["runs"][OURS]["seconds"]
    return [
        [
            name,
            f"{run['seconds']:.0f}" if run["reached"] else f"not within {run['seconds']:.0f}",
            f"{'' if run['reached'] else 'more than '}{run['seconds'] / ours:.2f}",
            str(len(run["curve"])),
            f"{run['crps']:.3f}",
            f"{run['peak_gb']:.2f}",
        ]
        for name, run in learning["runs"].items()
    ]


HEADINGS = ["", "step (s)", "processor (s)", "epoch (s)", "÷ ours", "peak (GB)", "predict (s)", "÷ ours", "peak (GB)"]


LEARNING_HEADINGS = ["", "training (s)", "÷ ours", "epochs", "CRPS", "peak (GB)"]


def table(content: dict, cores: int) -> Table:
    title = f"{cores} core{'s' * (cores > 1)}, load {content['load_before'][0]:.1f} before"
    return screen_table(title, HEADINGS, rows(content, cores))


def learning_table(content: dict) -> Table:
    return screen_table(f"To a CRPS of {content['learning']['target']:.3f}", LEARNING_HEADINGS, learning_rows(content))


def page(content: dict) -> str:
    effort, versions = content["effort"], content["versions"]
    evaluations = {
        cores: measured["train"][ADAPTIVE]["drift_evaluations"] for cores, measured in content["by_cores"].items()
    }
    usual = content.get("adaptive_at_usual_start")
    parts = [
        f"""# The engine's speed

Written by `{content["command"]}` on {content["processor"]} ({content["cores"]} cores), Python {content["python"]}, jax
{versions["jax"]}, torch {versions["torch"]}, torchsde {versions["torchsde"]}, torchcde {versions["torchcde"]}, commit
`{content["commit"][:10]}`. Load average {content["load_before"][0]:.1f} before, {content["load_after"][0]:.1f} after.
Figures: `speed.json`.

The paper's hyper-parameters (8 hidden units, fields (128, 128), drift (16, 64, 64, 64, 16), batch 64, 10 draws to
train, 100 to predict) on the same simulated patients, channels and grid. The peers are `bench/peers.py`: one Euler step
per cell of our grid (fixed), and the adaptive Euler steps of the published code. Each line is a process of its own,
bound to its cores. A step is the median of {effort["epochs"]} epochs of {effort["patients"] // BATCH_SIZE} steps
(ours, after compilation), of {effort["peer_steps"]} steps (fixed) or {effort["adaptive_steps"]} (adaptive); an epoch is
{content["steps_per_epoch"]} steps, {EPOCH_PATIENTS:,} patients, by multiplication. Prediction is of
{effort["predict_patients"]:,} patients with {effort["predict_draws"]} draws, untrained. Peaks count everything in the
process, libraries and compilation too. Processor time is what a step costs where other work shares the cores. Ours
draws Brownian increments of ±√Δt and lets the encoder's weights move every fourth cell, which is what `BNCDE.paper()`
does ([why](../explanation/deviations.md#brownian-increments)); moving with every cell as the peers do, and with their
Gaussian increments too, have lines of their own. Each peer runs with
one thread and with one per core, to train and to predict, and the faster counts.
"""
    ]
    for cores, measured in content["by_cores"].items():
        ours, share = measured["train"][OURS], measured["share"][OURS]
        alike = measured["train"][ADAPTIVE]["step_s"] / measured["train"][BOTH]["step_s"]
        parts.append(f"\n## {cores} core{'s' * (int(cores) > 1)}\n\n{markdown(HEADINGS, rows(content, int(cores)))}\n")
        parts.append(
            f"\nOur step has {ours['step_gflop']['fields']:.1f} billion floating point operations in its vector fields "
            f"and {ours['step_gflop']['drifts']:.1f} in its drift networks, forward and twice that backward: "
            f"{share['fields']:.0%} and, together, {share['fields_and_drifts']:.0%} of the "
            f"{share['matrix_gflop_per_s']:.0f} billion a second of a large float32 matrix product here. The adaptive "
            f"peer evaluates its drift {evaluations[cores]:.0f} times a step, and takes {alike:.1f} times as long as "
            "ours where ours does both: Gaussian increments, and weights that move with every cell.\n"
        )
    first, again = (content["compilation"][name] for name in ("first", "again"))
    parts.append(
        f"\n## Compilation\n\nThe first training step is over after {first['first_epoch_s']:.0f} s "
        f"({first['first_epoch_cpu_s']:.0f} s of processor time). Programs are kept on disk: in the next process it is "
        f"over after {again['first_epoch_s']:.0f} s ({again['first_epoch_cpu_s']:.0f} s).\n"
    )
    learning = content["learning"]
    parts.append(
        f"\n## Time to learn\n\nTraining time until the CRPS of {effort['crps_test_patients']} other patients first "
        f"falls to {learning['target']:.3f}, {CRPS_MULTIPLE} times that of the last value carried forward "
        f"({learning['last_value_crps']:.3f}, in standard deviations of the outcome), looked at after every epoch of "
        f"{effort['crps_patients']} patients, at most {learning['cap_s']:.0f} s. Ours with compilation; "
        f"{effort['cores'][-1]} cores; scoring does not count. The adaptive peer starts from small weights, the "
        f"others at the usual scale.\n\n{markdown(LEARNING_HEADINGS, learning_rows(content))}\n"
    )
    parts.append(
        "\n## How our cost grows\n\n"
        "Processor time on one core. One thing is changed at a time; time goes with its power p.\n\n"
    )
    for axis, grown in content["growth"].items():
        times = ", ".join(f"{point[axis]}: {point['cpu_s']:.2f} s" for point in grown["points"])
        power = "" if grown["exponent"] is None else f" p = {grown['exponent']:.2f}."
        what = {"patients": "an epoch", "depth": "a step, by layers of 128 units"}.get(axis, "a step")
        parts.append(f"- {axis} ({what}): {times}.{power}\n")
    parts.append(
        "\nThe adaptive peer starts from weights of about ±0.003, as the published code does, which needs the fewest "
        "steps; predictions of a trained model take more."
    )
    if usual:
        parts.append(
            f" From weights at the usual scale of 1/√fan-in it evaluates its drift {usual['drift_evaluations']:,} "
            "times in one forward pass."
        )
    return "".join([*parts, "\n"])
