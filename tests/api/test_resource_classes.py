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


def test_putting_renames_a_class_until_1_6(api: Api) -> None:
    ask(api, "PUT", "/resource_classes/CUSTOM_A")
    provider = make_provider(api, CUSTOM_A=1)
    renamed = api.put("/resource_classes/CUSTOM_A", {"name": "CUSTOM_B"}, version="1.6")
    assert (renamed.status_code, renamed.get_json()) == (200, shown("CUSTOM_B"))
    assert set(ask(api, "GET", f"/resource_providers/{provider}/inventories")["inventories"]) == {"CUSTOM_B"}
    assert api.put("/resource_classes/CUSTOM_A", {"name": "CUSTOM_C"}, version="1.6").status_code == 404
    assert api.put("/resource_classes/CUSTOM_B", {"name": "CUSTOM_B"}, version="1.6").status_code == 200
    standard = api.put("/resource_classes/VCPU", {"name": "CUSTOM_C"}, version="1.6")
    assert standard.status_code == 400
    assert "Cannot update standard resource class VCPU" in standard.text
    ask(api, "PUT", "/resource_classes/CUSTOM_C")
    taken = api.put("/resource_classes/CUSTOM_B", {"name": "CUSTOM_C"}, version="1.6")
    assert taken.status_code == 409
    assert "Resource class already exists: CUSTOM_C" in taken.text


def test_a_renaming_needs_a_name(api: Api) -> None:
    ask(api, "PUT", "/resource_classes/CUSTOM_A")
    empty = api.put("/resource_classes/CUSTOM_A", version="1.6", data=b"", content_type="application/json")
    assert empty.status_code == 400
    assert "Malformed JSON" in empty.text
    assert api.put("/resource_classes/CUSTOM_A", {}, version="1.6").status_code == 400


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
