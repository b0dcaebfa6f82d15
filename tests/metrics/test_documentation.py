"""Every exported name says how to read it and has a place in the reference."""

import re
from pathlib import Path

import pytest

from counterpath import metrics

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


@pytest.mark.parametrize("name", metrics.__all__)
def test_docstring_says_how_to_read_it(name):
    assert "How to read it:" in (getattr(metrics, name).__doc__ or "")


@pytest.mark.parametrize("name", metrics.__all__)
def test_reference_has_a_place_for_it(name):
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")


def test_reference_names_nothing_else():
    first_cells = re.findall(r"^\| `(\w+)` \| ", PAGE.read_text(encoding="utf-8").split("## On paper")[0], re.M)
    assert first_cells
    assert set(first_cells) <= set(metrics.__all__)


def test_exports_are_complete_and_sorted():
    assert list(metrics.__all__) == sorted(metrics.__all__)
    public = {
        name
        for name, value in vars(metrics).items()
        if callable(value) and getattr(value, "__module__", "").startswith("counterpath.metrics")
    }
    assert public == set(metrics.__all__)


def test_the_example_runs(capsys):
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert block is not None
    exec(block[1], {})
    assert len(capsys.readouterr().out.splitlines()) == 3
