"""Of all files of this folder that one process runs: a model that is trained once, and an explorer of it."""

import pytest
from browsed_page import launched, opened
from running_explorer import ready, served, some_model, some_patients
from small_models import small_tecde

import counterpath as cp


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


@pytest.fixture(scope="package")
def url(model, cohort):
    with served(model, cohort) as url:
        yield url


@pytest.fixture(scope="package")
def ward_url():
    """Of an intensive care unit, with infusions and covariates."""
    ward = cp.load_example_ward()
    with served(small_tecde(epochs=1).fit(ward[:24], ward[24:], progress=False), ward) as url:
        yield url


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture
def page(browser, url):
    with opened(browser, url) as page:
        yield page
