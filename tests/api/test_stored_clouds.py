"""Clouds written as rows equal clouds created by requests."""

from tests.api.conftest import Api
from tests.clouds import SHARES, Cloud, build, provider
from tests.stored_clouds import stored

CLOUD = (
    provider(
        "host",
        provider("numa0", provider("nic", SRIOV_NET_VF=4, traits=["CUSTOM_FAST"]), VCPU={"total": 8, "reserved": 2}),
        provider("numa1", VCPU=8, CUSTOM_GOLD=3, traits=["HW_NUMA_ROOT", "CUSTOM_FAST"]),
        aggregates=["a", "b"],
    ),
    provider("pool", DISK_GB=100, traits=[SHARES], aggregates=["b"]),
)


def told(api: Api, cloud: Cloud) -> dict[str, list[object]]:
    """Return what the API shows of each provider, with the literal's names for uuids."""
    names = {uuid: name for name, uuid in [*cloud.providers.items(), *cloud.aggregates.items()]}
    found = {}
    for name, uuid in cloud.providers.items():
        path = f"/resource_providers/{uuid}"
        shown = api.get(path).json
        own = [shown["generation"], names.get(shown["parent_provider_uuid"]), names[shown["root_provider_uuid"]]]
        aggregates = {names[one] for one in api.get(f"{path}/aggregates").json["aggregates"]}
        traits = {*api.get(f"{path}/traits").json["traits"]}
        found[name] = [*own, api.get(f"{path}/inventories").json, aggregates, traits]
    return found


def test_a_cloud_written_as_rows_is_what_requests_make(api: Api) -> None:
    written = told(api, build(api.call, *CLOUD))
    for name in ("nic", "numa0", "numa1", "host", "pool"):
        found = api.get(f"/resource_providers?name={name}").json["resource_providers"]
        assert api.delete(f"/resource_providers/{found[0]['uuid']}").status_code == 204
    assert told(api, stored(api.app, *CLOUD)) == written
