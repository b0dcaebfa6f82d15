"""The command line as a user has it, and a model that trains in seconds."""

from typer.testing import CliRunner

from counterpath.cli import app

MAIN = "from counterpath.cli import main; main()"  # for a process of its own
SMALL = """
model = "TECDE"
max_horizon = 5.0

[settings]
outcome_noise = true
hidden = 3
field_widths = [4]
embedding_widths = []
head_widths = []
plan_cells = 5
batch_size = 8
cuts_per_step = 2
draws = 1
epochs = 20
"""


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def in_one_line(text):
    return " ".join(text.split())
