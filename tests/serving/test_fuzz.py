"""Some of the requests of `make fuzz-server`, and as many that schemathesis makes of the OpenAPI description."""

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance, unsupported_method

from sentence_state.serving.limits import Limits
from sentence_state.serving.server import build_app

from .fuzzer import fuzz
from .test_server import Server

FEW = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)


def test_hostile_requests_get_documented_answers_and_leave_the_server_as_it_was(runs, tmp_path):
    server = Server([str(runs["assistant"])], tmp_path)
    try:
        before = server.post(["play some jazz"])
        counts, wrong = fuzz(server.host, server.port, 300, seed=1)
        assert not wrong
        assert {status for _, status in counts} >= {200, 404, 405, 413, 415, 422}
        assert server.post(["play some jazz"]) == before
    finally:
        code = server.stop()
        noise = server.process.communicate()[1]
    assert code == 0
    assert "Traceback" not in noise


def test_generated_requests_get_the_answers_that_the_description_promises(runs, models):
    app = build_app(list(runs.values()), list(models.values()), Limits(max_words=50))
    description = schemathesis.openapi.from_asgi("/openapi.json", app)
    tested = []
    for found in description.get_all_operations():
        operation = found.ok()

        @FEW
        @given(case=operation.as_strategy())
        def validate(case):
            # texts without a word are of the right shape, and refused; 405 is answered by the router for all paths
            case.call_and_validate(excluded_checks=[positive_data_acceptance, unsupported_method])

        validate()
        tested.append(operation.label)
    assert len(tested) == 6
    for service in app.state.services:
        service.close()
