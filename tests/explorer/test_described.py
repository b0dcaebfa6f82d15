"""Whatever the API's description allows is answered, and whatever else is refused, without a fault of ours."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from running_explorer import served, some_model, some_patients
from schemathesis import GenerationMode

pytestmark = pytest.mark.slow
EXAMPLES = 40


@pytest.fixture(scope="module")
def described():
    with served(some_model(), some_patients()) as url:
        yield schemathesis.openapi.from_url(f"{url}/openapi.json")


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_request_is_our_fault(described, mode):
    operations = [found.ok() for found in described.get_all_operations()]
    assert {operation.path for operation in operations} >= {"/api/card", "/api/predict", "/api/effect", "/api/compare"}
    answered = {}

    def hold(operation):
        @settings(max_examples=EXAMPLES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(generation_mode=mode))
        def holds(case):
            status = case.call().status_code
            answered.setdefault(operation.path, set()).add(status)
            assert status < 500, case.as_curl_command()

        holds()

    for operation in operations:
        if mode is GenerationMode.POSITIVE or operation.body or len(operation.query):
            hold(operation)
    assert answered["/api/predict"] <= {200, 400, 404, 405, 413, 415, 422}
