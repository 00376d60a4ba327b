"""neutron-lib's placement client: what neutron does for ports with bandwidth."""

import threading
import uuid
from pathlib import Path

import pytest
from keystoneauth1 import loading
from neutron_lib.exceptions import placement as refused
from neutron_lib.placement.client import PlacementAPIClient
from oslo_config import cfg

from tests.http_calls import HttpCalls

# Warnings of the libraries to their users do not concern this server.
pytestmark = pytest.mark.filterwarnings("default")

CLASS = "NET_BW_EGR_KILOBIT_PER_SEC"


@pytest.fixture
def client(noauth2_url: str, tmp_path: Path) -> PlacementAPIClient:
    """The client, configured by a file as in neutron."""
    path = tmp_path / "neutron.conf"
    path.write_text(f"[placement]\nauth_type = admin_token\ntoken = admin\nendpoint = {noauth2_url}\n")
    conf = cfg.ConfigOpts()
    loading.register_auth_conf_options(conf, "placement")
    loading.register_session_conf_options(conf, "placement")
    conf.register_opts([cfg.StrOpt("region_name"), cfg.StrOpt("endpoint_type", default="public")], group="placement")
    conf(["--config-file", str(path)])
    return PlacementAPIClient(conf)


@pytest.fixture
def agent(client: PlacementAPIClient) -> str:
    """A host with an agent's provider below it."""
    host, agent = str(uuid.uuid4()), str(uuid.uuid4())
    client.create_resource_provider({"uuid": host, "name": f"host-{host}"})
    client.create_resource_provider({"uuid": agent, "name": f"agent-{agent}", "parent_provider_uuid": host})
    return agent


def test_an_agent_reports_its_bandwidth(client: PlacementAPIClient, agent: str):
    client.update_resource_class("CUSTOM_NEUTRON")
    client.update_trait("CUSTOM_PHYSNET_PUBLIC")
    client.update_resource_provider_traits(agent, ["CUSTOM_PHYSNET_PUBLIC"])
    client.update_resource_provider_inventories(agent, {CLASS: {"total": 1000}, "CUSTOM_NEUTRON": {"total": 1}})
    client.update_resource_provider_inventory(agent, {"total": 2000}, CLASS)
    aggregate = str(uuid.uuid4())
    generation = client.get_resource_provider(agent)["generation"]
    client.associate_aggregates(agent, {"aggregates": [aggregate], "resource_provider_generation": generation})
    assert client.get_inventory(agent, CLASS)["total"] == 2000
    assert client.list_aggregates(agent)["aggregates"] == [aggregate]
    found = client.list_resource_providers(resources="CUSTOM_NEUTRON:1", member_of=aggregate)
    assert [each["uuid"] for each in found["resource_providers"]] == [agent]
    client.delete_resource_provider_inventories(agent)
    client.delete_resource_provider(agent)
    assert client.list_resource_providers(name=f"agent-{agent}")["resource_providers"] == []


def test_what_is_missing_is_told_by_the_exception_that_neutron_expects(client: PlacementAPIClient, agent: str):
    nobody = str(uuid.uuid4())
    with pytest.raises(refused.PlacementResourceProviderNotFound):
        client.get_resource_provider(nobody)
    with pytest.raises(refused.PlacementInventoryNotFound):
        client.get_inventory(agent, CLASS)
    with pytest.raises(refused.PlacementTraitNotFound):
        client.get_trait("CUSTOM_NOWHERE")
    with pytest.raises(refused.PlacementResourceClassNotFound):
        client.get_resource_class("CUSTOM_NOWHERE")


def test_writers_who_meet_go_on_after_the_conflict(client: PlacementAPIClient, agent: str):
    """The client reads the generation again when the error code says conflict."""
    names = [f"CUSTOM_MEETING_{number}" for number in range(4)]
    for name in names:
        client.update_trait(name)
    barrier, failures = threading.Barrier(len(names)), []

    def write(name: str) -> None:
        barrier.wait()
        try:
            client.update_resource_provider_traits(agent, [name])
        except Exception as error:  # whatever it is, it fails the test
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert client.list_resource_provider_traits(agent)["traits"][0] in names


def test_the_bandwidth_of_a_port_changes_with_its_rule(client: PlacementAPIClient, agent: str, noauth2_url: str):
    client.update_resource_provider_inventories(agent, {CLASS: {"total": 1000}})
    consumer = str(uuid.uuid4())
    body = {
        "allocations": {agent: {"resources": {CLASS: 100}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
    }
    assert HttpCalls(noauth2_url)("PUT", f"/allocations/{consumer}", "1.28", body) == (204, None)
    client.update_qos_allocation(consumer, {agent: {CLASS: 300}})
    assert client.list_allocations(consumer)["allocations"][agent]["resources"] == {CLASS: 400}
