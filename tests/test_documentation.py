"""Every Python block of the README and the docs runs, page by page, as a reader would paste it."""

import os
import re
import shlex
from pathlib import Path

import matplotlib as mpl
import pytest
import small_mimic_extract
from shell import run

from counterpath.training import TrainingSettings

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
DATA = Path(os.environ.get("COUNTERPATH_DATA", "there is none"))


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
    if "all_hourly_data.h5" in page.read_text():
        small_mimic_extract.write(tmp_path / "all_hourly_data.h5", small_mimic_extract.long_stays())
    namespace: dict[str, object] = {}
    blocks = BLOCK.findall(page.read_text())
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)
    assert blocks


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="COUNTERPATH_DATA names no folder with real data")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("page", "source", "called"),
    [
        ("meds.md", "mimic-iv-demo-meds", "mimic-iv-meds"),
        ("mimic-extract.md", "all_hourly_data_mimic3demo.h5", "all_hourly_data.h5"),
    ],
)
def test_the_commands_lead_from_a_file_to_a_report(page, source, called, tmp_path, monkeypatch):
    """With real records, as a reader would type them; two epochs are enough to see that they run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(TrainingSettings, "epochs_for", lambda *_: 2)
    Path(called).symlink_to((DATA / source).resolve())
    (block,) = COMMANDS.findall((ROOT / "docs" / "how-to" / page).read_text())
    for line in block.splitlines():
        result = run(*shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}\n{result.stderr}"
    assert "<html" in Path("report.html").read_text()[:2_000].lower()


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
