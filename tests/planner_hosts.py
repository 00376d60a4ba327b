"""Hosts with devices, as etc/placement/examples/register_gpu_host.py creates them.

The script runs, but its requests are written as rows: a host takes some eighty requests.
api/test_stored_clouds.py shows that the results are the same.
"""

from copy import deepcopy
from typing import Any

from tests.api.conftest import Api
from tests.claims import OWNER, claimed, new_uuid
from tests.example_scripts import example
from tests.http_calls import Call, ask
from tests.stored_clouds import StoredProvider, store_providers

script = example("register_gpu_host")

CANDIDATES, CLAIMS = "/planner/v1/candidates", "/planner/v1/claims"
EIGHT_SWITCHES = [[{"gpus": 1, "nics": 1}] * 4] * 2
"""The machine of the first example in Koordinator's proposal: eight switches with a GPU and a NIC each."""


def register(api: Api, name: str = "host", **changed: Any) -> None:
    """Create the tree of a host; by default it is as in the script."""
    made = _Asked(api)
    script.register(made, name, {**deepcopy(script.HOST), **changed})
    made.store()


def uuid_of(name: str) -> str:
    """Return the uuid of a provider that was registered under a name."""
    return str(script.uuid.uuid5(script.NAMESPACE, name))


def provider(api: Api, name: str, parent: str | None, inventory: dict[str, Any], traits: list[str]) -> str:
    """Create one provider as the script does."""
    made = _Asked(api)
    uuid: str = script.provider(made, name, parent, inventory, traits)
    made.store()
    return uuid


class _Asked:
    """Receives the script's requests: those about providers are recorded, all others are sent."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._providers: dict[str, StoredProvider] = {}

    def __call__(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        if not path.startswith("/resource_providers"):
            return ask(self._api, method, path, body=body)
        if body is None:  # does it exist?
            return {"resource_providers": []}
        if method == "POST":
            made = StoredProvider(body["uuid"], body["name"], body.get("parent_provider_uuid"))
            self._providers[made.uuid] = made
            return None
        known = self._providers[path.split("/")[2]]
        known.inventories = body.get("inventories", known.inventories)
        known.traits = body.get("traits", known.traits)
        return {"resource_provider_generation": known.generation}

    def store(self) -> None:
        store_providers(self._api.database, list(self._providers.values()))


def names_of(api: Call) -> dict[str, str]:
    """Return the names of all providers by uuid."""
    return {row["uuid"]: row["name"] for row in ask(api, "GET", "/resource_providers")["resource_providers"]}


def consumer(**changed: Any) -> dict[str, Any]:
    """Return a new consumer in the form used by claims."""
    return {"uuid": new_uuid(), **OWNER, "consumer_type": "INSTANCE", "consumer_generation": None, **changed}


def placed(api: Call, body: dict[str, Any]) -> dict[str, Any]:
    """Claim for a new consumer, and return the answer."""
    answer: dict[str, Any] = ask(api, "POST", CLAIMS, body={**body, "consumer": consumer()})
    return answer


def planned(api: Call, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the candidates for a body: for each group the names of the providers that serve it."""
    answer = ask(api, "POST", CANDIDATES, body=body)
    names = names_of(api)
    return [
        {suffix: [names[uuid] for uuid in uuids] for suffix, uuids in request["mappings"].items()}
        for request in answer["allocation_requests"]
    ]


def only(api: Call, body: dict) -> dict[str, str]:
    """Return the only candidate in short form: the names without the host's, in one line for each group."""
    (candidate,) = planned(api, body)
    return {suffix: " ".join(name.removeprefix("host-") for name in names) for suffix, names in candidate.items()}


def hold(api: Call, name: str, **amounts: int) -> str:
    """Allocate from a provider for another consumer."""
    return claimed(api, {uuid_of(f"host-{name}"): amounts}, project_id="other", user_id="other")
