"""The OpenAPI document: what it says of requests and responses is so."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from starlette.testclient import TestClient

EXAMPLES = 10  # for each route, with requests as the document describes them, and as it does not
CHECKS = [
    *(not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance),
    *(response_headers_conformance, unsupported_method),
]
ROUTES = {
    *("POST /translate", "POST /detect", "GET /languages", "POST /languages", "POST /translate_file", "POST /suggest"),
    *("GET /download_file/{filename}", "GET /frontend/settings", "GET /health", "GET /spec", "GET /metrics"),
    *("GET /api/models", "POST /api/classify"),
}


def test_every_route_is_documented(api: TestClient) -> None:
    document = api.get("/openapi.json").json()
    routes = {
        f"{method.upper()} {path}": each
        for path, methods in document["paths"].items()
        for method, each in methods.items()
    }
    assert set(routes) == ROUTES
    for operation in routes.values():
        assert operation["description"] and {"200", "400", "403", "429", "503"} <= set(operation["responses"])
        error = operation["responses"]["403"]["content"]["application/json"]["schema"]
        assert error == {"$ref": "#/components/schemas/ErrorMessage"}


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_requests_drawn_from_the_document(mode: GenerationMode, api_address: str) -> None:
    """Requests as the document describes them, and as it does not, are answered as it says, and never with 500."""
    document = requests.get(f"{api_address}/openapi.json", timeout=30).json()
    with requests.Session() as session:
        for result in schemathesis.openapi.from_dict(document).get_all_operations():
            _check(result.ok(), mode, api_address, session)


def _check(operation: Any, mode: GenerationMode, address: str, session: requests.Session) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES if operation.method == "post" else 2,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any) -> None:
        case.call_and_validate(base_url=address, session=session, checks=CHECKS)

    with suppress(Unsatisfiable):  # a route without parameters has no wrong ones
        check()


@pytest.mark.parametrize("q", ["The boy sees a mango.", ["The boy sees a mango.", "", "Rahul buys\na house."]])
def test_whole_responses(q: str | list[str], api_address: str) -> None:
    document = requests.get(f"{api_address}/openapi.json", timeout=30).json()
    operation = schemathesis.openapi.from_dict(document)["/translate"]["POST"]
    asked = {"q": q, "source": "auto", "target": "de", "alternatives": 2}
    asked |= dict.fromkeys(("alignment", "confidence", "trace"), True)
    response = requests.post(f"{api_address}/translate", json=asked, timeout=30)
    assert response.status_code == 200 and len(response.json()) == 6
    operation.validate_response(response)
