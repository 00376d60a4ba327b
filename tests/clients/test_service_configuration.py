"""openstacksdk, set up from a service's configuration file as nova and cyborg do."""

from pathlib import Path

import pytest
from keystoneauth1 import loading
from openstack.connection import Connection
from oslo_config import cfg

from tests.clients.conftest import PASSWORD, USER

# Warnings of the libraries to their users do not concern this server.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("name", ["endpoint", "endpoint_override"])
def test_a_token_of_noauth2(noauth2_url: str, tmp_path: Path, name: str):
    options = {"auth_type": "admin_token", "token": "admin", name: noauth2_url}
    _finds_by_name_what_it_made(_connection(tmp_path, options), f"sdk-{name}")


@pytest.mark.parametrize("name", ["endpoint", "endpoint_override"])
def test_a_user_of_http_basic(http_basic_url: str, tmp_path: Path, name: str):
    options = {"auth_type": "http_basic", "username": USER, "password": PASSWORD, name: http_basic_url}
    _finds_by_name_what_it_made(_connection(tmp_path, options), f"sdk-{name}")


def _finds_by_name_what_it_made(connection: Connection, name: str) -> None:
    made = connection.placement.create_resource_provider(name=name)
    connection.placement.create_resource_provider_inventory(made, "VCPU", total=4)
    assert connection.placement.find_resource_provider(name).id == made.id
    assert [row.total for row in connection.placement.resource_provider_inventories(made)] == [4]
    assert connection.placement.get("/allocation_candidates?resources=VCPU:1", microversion="1.36").status_code == 200


def _connection(directory: Path, options: dict[str, str]) -> Connection:
    """Do what nova does with its group [placement]."""
    path = directory / "nova.conf"
    path.write_text("[placement]\n" + "".join(f"{name} = {value}\n" for name, value in options.items()))
    source = cfg.ConfigOpts()
    for register in (
        loading.register_auth_conf_options,
        loading.register_session_conf_options,
        loading.register_adapter_conf_options,
    ):
        register(source, "placement")
    source.set_default("service_type", "placement", group="placement")
    source.set_default("valid_interfaces", ["internal", "public"], group="placement")
    source(["--config-file", str(path)])
    auth = loading.load_auth_from_conf_options(source, "placement")
    session = loading.load_session_from_conf_options(source, "placement", auth=auth)
    return Connection(session=session, oslo_conf=source, service_types={"placement"})
