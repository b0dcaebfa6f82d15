"""Every Python block of the README and the docs runs, page by page, as a reader would paste it."""

import os
import re
from pathlib import Path

import matplotlib as mpl
import pytest

from counterpath.training import TrainingSettings

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


TRAINS = {
    "README.md",
    "ask-a-model.md",
    "horizon-and-lookback.md",
    "resume.md",
    "tutorial.md",
}  # pages that take a minute
WITH_CODE = [
    pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.name in TRAINS else [])
    for page in PAGES
    if BLOCK.search(page.read_text())
]


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_code_on_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A reader trains for minutes; that the code runs is seen in two epochs.
    monkeypatch.setattr(TrainingSettings, "epochs_for", lambda *_: 2)
    mpl.use("agg")
    namespace: dict[str, object] = {}
    blocks = BLOCK.findall(page.read_text())
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)
    assert blocks


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+\.(?:md|cff|json))\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_begins_with_the_two_commands():
    top = (ROOT / "README.md").read_text()[:1000]
    assert "make demo" in top
    assert "make test" in top


def test_ci_calls_what_a_person_would():
    script = (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert script.index("make check") < script.index("make test")
