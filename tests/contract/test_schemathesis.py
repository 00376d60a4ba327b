"""Requests that schemathesis generates from the API reference, valid and invalid: every answer is documented.

This covers its status, and the form of its body at the requested microversion. ``--deep`` generates more of them for
each operation, on all databases.
"""

from collections.abc import Iterator

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from werkzeug.test import TestResponse

from placement.openapi.document import document
from placement.openapi.story import HOST, NUMA, SERVER, STORY
from tests.api.conftest import Api
from tests.api.documented import check
from tests.examples import examples

EXAMPLES = 3
BUILT = [step.title for step in STORY].index("The allocations of a consumer")
"""The number of initial steps of the story: a host, a NUMA node, and the allocations of two consumers."""

KNOWN = {"uuid": [HOST, NUMA], "consumer_uuid": [SERVER], "name": ["VCPU", "CUSTOM_FAST", "CUSTOM_DESK"]}
DOCUMENT = document()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = [(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods]
VERSIONS = st.sampled_from(["1.0", "1.8", "1.14", "1.28", "1.34", "1.39", "latest"])

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.filterwarnings("default"),  # schemathesis and its libraries emit warnings of their own
]


@pytest.fixture
def built(api: Api) -> Iterator[Api]:
    """A server after the initial steps of the story."""
    for step in STORY[:BUILT]:
        body = {} if step.body is None else {"json": step.body}
        api.request(step.method, step.path, version=step.version, **body).close()
    return api


@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=lambda part: part)
def test_every_answer_is_documented(built: Api, path: str, method: str):
    """To valid requests, then to invalid ones."""
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        ask_many(built, path, method, mode)


def ask_many(built: Api, path: str, method: str, mode: GenerationMode) -> None:
    operation = SCHEMA[path][method.upper()]
    documented = DOCUMENT["paths"][path][method]["responses"]

    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    @examples(EXAMPLES, settings(derandomize=True, database=None, suppress_health_check=list(HealthCheck)))
    def ask(case: Case, data: st.DataObject) -> None:
        answer = _answer(built, case, data)
        assert answer.status_code < 500, answer.text
        assert str(answer.status_code) in documented, answer.text
        check(built.app, answer)
        answer.close()

    ask()


def _answer(api: Api, case: Case, data: st.DataObject) -> TestResponse:
    """Send a case, often for something that exists."""
    for name in case.path_parameters or {}:
        if name in KNOWN and data.draw(st.booleans()):
            case.path_parameters[name] = data.draw(st.sampled_from(KNOWN[name]))
    headers = {name: str(value) for name, value in (case.headers or {}).items() if name.lower() != "x-auth-token"}
    if data.draw(st.booleans()):
        headers["OpenStack-API-Version"] = f"placement {data.draw(VERSIONS)}"
    options = {}
    if not isinstance(case.body, schemathesis.core.NotSet):
        options = {"json": case.body} if not isinstance(case.body, bytes) else {"data": case.body}
    try:
        path = case.formatted_path
        return api.app.test_client().open(
            path,
            method=case.method,
            query_string=dict(case.query or {}),
            headers={"x-auth-token": "admin", "x-roles": "admin,service", **headers},
            **options,
        )
    except UnicodeEncodeError:  # a surrogate, or a header that no client can send
        hypothesis.reject()
