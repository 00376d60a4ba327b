"""Resource classes, standard and custom."""

import os_resource_classes

from tests.api.conftest import Api
from tests.claims import ask, make_provider


def listed(api: Api) -> list[str]:
    return [found["name"] for found in ask(api, "GET", "/resource_classes")["resource_classes"]]


def shown(name: str) -> dict[str, object]:
    return {"name": name, "links": [{"rel": "self", "href": f"/resource_classes/{name}"}]}


def test_standard_classes_come_first_and_in_their_order(api: Api) -> None:
    for name in ("CUSTOM_B", "CUSTOM_A"):
        ask(api, "PUT", f"/resource_classes/{name}")
    assert listed(api) == [*os_resource_classes.STANDARDS, "CUSTOM_B", "CUSTOM_A"]
    assert ask(api, "GET", "/resource_classes/CUSTOM_A", "1.2") == shown("CUSTOM_A")
    assert shown("VCPU") in ask(api, "GET", "/resource_classes", "1.2")["resource_classes"]


def test_a_class_made_again_is_a_new_one(api: Api) -> None:
    """Its id may change, so no process may cache it."""
    for _ in range(2):
        ask(api, "PUT", "/resource_classes/CUSTOM_A")
        ask(api, "PUT", "/resource_classes/CUSTOM_B")
        provider = make_provider(api, CUSTOM_B=1)
        assert set(ask(api, "GET", f"/resource_providers/{provider}/inventories")["inventories"]) == {"CUSTOM_B"}
        ask(api, "DELETE", f"/resource_providers/{provider}")
        for name in ("CUSTOM_A", "CUSTOM_B"):
            ask(api, "DELETE", f"/resource_classes/{name}")
