"""Of all files of this folder that one process runs: a model that is trained once, and an explorer of it."""

import pytest
from running_explorer import ready, some_model, some_patients


@pytest.fixture(scope="package")
def model():
    return some_model()


@pytest.fixture(scope="package")
def cohort():
    return some_patients()


@pytest.fixture(scope="package")
def client(model, cohort):
    with ready(model, cohort) as client:
        yield client
