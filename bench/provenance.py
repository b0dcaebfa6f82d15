"""Where measured figures are kept: docs/results, JSON and the page rendered from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from counterpath.experiments.provenance import provenance

__all__ = ["RESULTS", "last_result", "provenance", "write_result"]

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def last_result(name: str, folder: Path = RESULTS) -> Any:
    """What `write_result` wrote."""
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def write_result(name: str, content: dict[str, Any], page: str, folder: Path = RESULTS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(page, encoding="utf-8")
