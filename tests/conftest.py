import os
from pathlib import Path

# Compiled programs are shared between tests, runs and Pythons, but not with the user's.
# Tests compile far more than they compute, so small programs are kept too.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

import jax
import jaxtyping
import pytest
from hypothesis import settings

# Two devices on every machine, so that what is spread over them is tested everywhere.
jax.config.update("jax_num_cpu_devices", 2)

# Time is measured by `make bench`, never by a test. CI draws the same examples every time.
settings.register_profile("counterpath", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=40)  # the same ones: more find no more
settings.register_profile("short", deadline=None, derandomize=True, max_examples=10)  # other Pythons run the same code
settings.load_profile("ci" if os.environ.get("CI") else "counterpath")


@pytest.fixture
def checker_off():
    """As users run it: the shape checker of the tests would otherwise speak before our own messages."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True, scope="module")
def compiled_quickly(request):
    """Where tests compile many programs and compute little, programs are compiled quickly, not well."""
    jax.config.update("jax_disable_most_optimizations", request.path.parent.name in ("dynamics", "models"))
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(autouse=True, scope="module")
def let_go_of_compiled_programs():
    """A process may hold only so many: each has memory of its own, and of thousands the system gives no more."""
    yield
    jax.clear_caches()


def pytest_collection_modifyitems(items):
    """The longest test first, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: "killed_again_and_again" not in item.name)
