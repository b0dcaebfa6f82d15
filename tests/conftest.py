import jaxtyping
import pytest


@pytest.fixture
def checker_off():
    """As users run it: the shape checker of the tests would otherwise speak before our own messages."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
