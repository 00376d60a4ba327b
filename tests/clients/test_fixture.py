"""The fixture that other projects import, and placement.direct, used as nova's functional tests use them."""

import logging
import uuid
from typing import Any

import fixtures
import pytest
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from oslo_config import cfg
from oslo_config import fixture as config_fixture

from placement import direct
from placement.tests.functional.fixtures import capture
from placement.tests.functional.fixtures import placement as placement_fixtures

pytestmark = pytest.mark.filterwarnings("default")


class Service(placement_fixtures.PlacementFixture):
    """What nova does with the fixture: requests with the token, to the endpoint, by a session without a catalogue."""

    def setUp(self) -> None:
        super().setUp()
        self._client = Adapter(Session(auth=None), raise_exc=False)

    def request(self, method: str, path: str, version: str, **options: Any) -> Any:
        headers = {"x-auth-token": self.token, "OpenStack-API-Version": f"placement {version}"}
        return self._client.request(path, method, endpoint_override=self.endpoint, headers=headers, **options)

    def make(self, name: str) -> Any:
        return self.request("POST", "/resource_providers", "1.20", json={"name": name})

    def names(self) -> list[str]:
        """Return the names of all providers."""
        answer = self.request("GET", "/resource_providers", "1.0")
        return [provider["name"] for provider in answer.json()["resource_providers"]]


def test_a_service_is_there_for_a_test_and_gone_after_it():
    with Service() as service:
        made = service.make("host")
        assert made.status_code == 200
        location = made.headers["location"]
        assert location.startswith(service.endpoint + "/resource_providers/")
        assert service.names() == ["host"]
    with pytest.raises(Exception, match=r"(?i)connect|resolve|name"):
        service.request("GET", "/resource_providers", "1.0", connect_retries=0)


def test_every_test_has_a_database_of_its_own():
    for _ in range(3):
        with Service() as service:
            assert service.names() == []
            service.make("host")


def test_tests_may_have_directories_of_their_own_for_temporary_files():
    """As nova's do; no files of one test remain for the next."""
    for _ in range(2):
        with fixtures.NestedTempfile(), Service() as service:
            assert service.names() == []


def test_two_services_run_side_by_side():
    with Service() as one, Service() as other:
        one.make("host")
        assert other.names() == []


def test_the_administrator_may_reshape_as_in_the_tests_of_nova():
    with Service() as service:
        host = service.make("host").json()["uuid"]
        inventories = {host: {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}}
        body = {"inventories": inventories, "allocations": {}}
        assert service.request("POST", "/reshaper", "1.30", json=body).status_code == 204


def test_a_token_of_ones_own_is_one_without_rights():
    with Service(token="somebody:project") as service:
        assert service.request("GET", "/resource_providers", "1.0").status_code == 403


def test_a_subclass_may_configure_it():
    class Limited(Service):
        def _configure_placement(self, conf_fixture: Any) -> None:
            conf_fixture.config(group="placement", max_allocation_candidates=1)

    with Limited() as service:
        for name in ("one", "two"):
            host = service.make(name).json()["uuid"]
            body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
            service.request("PUT", f"/resource_providers/{host}/inventories", "1.26", json=body)
        found = service.request("GET", "/allocation_candidates?resources=VCPU:1", "1.39").json()
        assert len(found["allocation_requests"]) == 1


def test_a_client_without_a_network_works_on_the_database_of_a_fixture():
    """As in nova's tests of its report client, whose client comes from placement.direct."""
    conf_fixture = config_fixture.Config(cfg.ConfigOpts())
    with placement_fixtures.PlacementFixture(conf_fixture=conf_fixture, use_intercept=False) as service:
        consumer = str(uuid.uuid4())
        with direct.PlacementDirect(service.conf_fixture.conf, latest_microversion=True) as client:
            assert client.get(f"/allocations/{consumer}").json() == {"allocations": {}}
            answer = client.put("/resource_classes/CUSTOM_A")
            assert (answer.status_code, answer.headers["openstack-api-version"]) == (201, "placement 1.39")
        with direct.PlacementDirect(service.conf_fixture.conf) as client:
            assert client.get("/resource_providers").headers["openstack-api-version"] == "placement 1.0"
            assert client.get("/resource_classes", microversion="1.2").status_code == 200


def test_logs_and_warnings_are_captured():
    with fixtures.Fixture() as around:
        log = around.useFixture(capture.Logging())
        around.useFixture(capture.WarningsFixture())
        logging.getLogger("nova").warning("kept")
        assert "kept" in log.logger.output
