import subprocess
import sys

import pytest

SHOW = (
    "import jax; from counterpath.training.compiled import keep_compiled; keep_compiled(); "
    "print(jax.config.values['jax_compilation_cache_dir'])"
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"COUNTERPATH_CACHE": "/some/folder"}, "/some/folder/compiled"),
        ({"COUNTERPATH_CACHE": ""}, "None"),
        ({"XDG_CACHE_HOME": "/users/own"}, "/users/own/counterpath/compiled"),
        ({"JAX_COMPILATION_CACHE_DIR": "/jax/own", "COUNTERPATH_CACHE": "/some/folder"}, "/jax/own"),
    ],
)
def test_compiled_programs_are_kept_where_the_user_says(given, expected, monkeypatch):
    for name in ("COUNTERPATH_CACHE", "XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    shown = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == expected
