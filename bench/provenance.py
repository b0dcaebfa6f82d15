"""What a measured figure must say of itself: command, machine, versions, commit."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def provenance(command: str) -> dict[str, Any]:
    return {
        "command": command,
        **_source(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("counterpath", "jax", "numpy", "polars")},
    }


def _source() -> dict[str, Any]:
    """Of a clone, or as the environment says where a copy has no history of its own."""
    said = os.environ.get("COUNTERPATH_COMMIT")
    if said:
        return {"commit": said, "changed_since_commit": False}
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", "counterpath", "bench"], capture_output=True, text=True, check=True
    ).stdout
    return {"commit": commit, "changed_since_commit": bool(changed.strip())}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # a copy that is on the path, but not installed
        return "not installed"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def last_result(name: str, folder: Path = RESULTS) -> Any:
    """What `write_result` wrote."""
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def write_result(name: str, content: dict[str, Any], page: str, folder: Path = RESULTS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(page, encoding="utf-8")
