import subprocess
import sys
from importlib.metadata import version

import pytest

import counterpath as cp

HEAVY = ("jax", "equinox", "diffrax", "optax", "torch", "pandas")


@pytest.mark.parametrize(
    "statement",
    [
        "import counterpath",
        "import counterpath as cp; cp.load_example_ward().check()",
        "import counterpath.metrics",
        "from counterpath.paths import control_path",
        "from counterpath.cli import app; app(['--help'], standalone_mode=False)",
    ],
)
def test_nothing_heavy_is_loaded(statement):
    code = f"{statement}\nimport sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_public_name_can_be_had():
    assert set(dir(cp)) == set(cp.__all__)
    for name in cp.__all__:
        assert getattr(cp, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Cohorts'"):
        _ = cp.Cohorts


def test_the_version_is_the_packages():
    assert cp.__version__ == version("counterpath")
