"""keystoneauth finds the versions of a service by itself."""

import pytest
from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import Unauthorized
from keystoneauth1.http_basic import HTTPBasicAuth
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from tests.clients.conftest import PASSWORD, USER

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def adapter(noauth2_url: str) -> Adapter:
    return Adapter(Session(auth=Token(noauth2_url, "admin")), service_type="placement")


def test_the_microversions_are_found(adapter: Adapter, noauth2_url: str):
    found = adapter.get_endpoint_data()
    assert (found.api_version, found.min_microversion, found.max_microversion) == ((1, 0), (1, 0), (1, 39))
    assert found.url.rstrip("/") == noauth2_url


def test_they_are_found_without_credentials(http_basic_url: str):
    bare = Adapter(Session(), endpoint_override=http_basic_url)
    (version,) = bare.get("/", authenticated=False).json()["versions"]
    assert version["max_version"] == "1.39"


@pytest.mark.parametrize(("asked", "served"), [(None, "1.0"), ("1.28", "1.28"), ("latest", "1.39")])
def test_the_microversion_that_is_asked_for_is_served(adapter: Adapter, asked: str | None, served: str):
    answer = adapter.get("/resource_providers", microversion=asked)
    assert answer.headers["openstack-api-version"] == f"placement {served}"


def test_the_id_of_a_request_comes_back_and_a_global_one_goes_in(adapter: Adapter):
    adapter.global_request_id = "req-11111111-2222-4333-8444-555555555555"
    answer = adapter.get("/resource_providers")
    assert answer.headers["x-openstack-request-id"].startswith("req-")


def test_an_error_is_the_exception_of_its_status_with_its_sentence(http_basic_url: str):
    wrong = Adapter(Session(auth=HTTPBasicAuth(http_basic_url, USER, PASSWORD + "x")), service_type="placement")
    with pytest.raises(Unauthorized) as raised:
        wrong.get("/resource_providers")
    assert raised.value.request_id.startswith("req-")
    assert "credentials" in raised.value.details
