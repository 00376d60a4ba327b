"""Clouds and hosts that tests write as rows equal those that requests create."""

import json
import re

from tests.api.conftest import Api
from tests.claims import ask
from tests.clouds import SHARES, build, provider
from tests.planner_hosts import names_of, register, script
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


def told(api: Api, names: dict[str, str], host: str = "host") -> list[dict[str, object]]:
    """Return everything the API shows of some providers, with their names for uuids, and "host" for the host's name."""
    shown = []
    for uuid in sorted(names_of(api).keys() & names, key=lambda uuid: names[uuid]):
        for part in ("", "/inventories", "/traits", "/aggregates", "/usages"):
            text = json.dumps(ask(api, "GET", f"/resource_providers/{uuid}{part}"))
            for each, name in names.items():
                text = text.replace(each, name)
            document = json.loads(re.sub(rf"(?<=[\"/]){host}\b", "host", text))
            shown.append({key: sorted(of, key=repr) if isinstance(of, list) else of for key, of in document.items()})
    return shown


def test_a_cloud_written_as_rows_is_what_requests_make(api: Api) -> None:
    seen = []
    for make in (lambda: build(api, *CLOUD), lambda: stored(api.app, *CLOUD)):
        made = make()
        seen.append(told(api, {uuid: name for name, uuid in [*made.providers.items(), *made.aggregates.items()]}))
        for name in ("nic", "numa0", "numa1", "host", "pool"):
            ask(api, "DELETE", f"/resource_providers/{made.providers[name]}")
    assert seen[0] == seen[1]


def test_a_host_written_as_rows_is_what_the_script_makes(api: Api) -> None:
    script.register(lambda method, path, body: ask(api, method, path, body=body), "requests")
    register(api, "rows")
    by_host = {
        host: {u: n for u, n in names_of(api).items() if n.split("-")[0] == host} for host in ("requests", "rows")
    }
    assert len(by_host["rows"]) == 23
    assert told(api, by_host["rows"], "rows") == told(api, by_host["requests"], "requests")
