"""Compiled programs are kept between runs, so that the second fit starts at once."""

from __future__ import annotations

import os
from pathlib import Path

import jax

LEAST_SECONDS = 0.3  # that a program took to compile, to be worth keeping


def keep_compiled() -> None:
    """Use jax's own cache of compiled programs, unless the user has chosen where it is or that there is none.

    `COUNTERPATH_CACHE` names another folder; empty, it turns the cache off.
    """
    if jax.config.values.get("jax_compilation_cache_dir") is not None:
        return
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "counterpath"
    folder = os.environ.get("COUNTERPATH_CACHE", str(usual))
    if folder:
        jax.config.update("jax_compilation_cache_dir", str(Path(folder) / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
