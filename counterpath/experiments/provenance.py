"""What a measured figure must say of itself: command, machine, versions, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def provenance(command: str) -> dict[str, Any]:
    """Of a figure that is measured now, by this command."""
    return {
        "command": command,
        **_source(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("counterpath", "jax", "numpy", "polars")},
    }


def of_fit(command: str) -> dict[str, Any]:
    """Of a fit that is made now. It may be kept and asked later, by another state of the program."""
    return provenance(command) | {"device": device(), "visits": "any time"}


def device() -> str | None:
    """The accelerator, where there is one."""
    import jax

    first = jax.devices()[0]
    return None if first.platform == "cpu" else first.device_kind


def _source() -> dict[str, Any]:
    """Of a clone; or as the environment says where a copy has no history; or nothing, where it is installed."""
    said = os.environ.get("COUNTERPATH_COMMIT")
    if said:
        return {"commit": said, "changed_since_commit": False}
    if not (ROOT / ".git").exists():
        return {"commit": None, "changed_since_commit": None}
    try:
        commit = _git("rev-parse", "HEAD")
        return {
            "commit": commit,
            "changed_since_commit": bool(_git("status", "--porcelain", "--", "counterpath", "bench")),
        }
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "changed_since_commit": None}


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


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
