import os
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.slow
def test_programs_of_a_prediction_are_kept_too(tmp_path):
    model = Path(__file__).parents[1] / "estimators" / "model_files" / "format-7.safetensors"
    ask = (
        f"import counterpath as cp; model = cp.load({str(model)!r}); "
        "known = cp.simulate_tumor_growth(20, seed=3).cohort.until(50.0); "
        "model.predict(known, cp.Plan.none(), horizons=[1, 3], progress=False)"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    subprocess.run([sys.executable, "-c", ask], check=True, env=env | {"COUNTERPATH_CACHE": str(tmp_path)})
    assert list((tmp_path / "compiled").iterdir())
