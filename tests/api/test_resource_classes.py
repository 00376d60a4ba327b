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


def test_posting_makes_a_class_once(api: Api) -> None:
    made = api.post("/resource_classes", {"name": "CUSTOM_A"}, version="1.2")
    assert (made.status_code, made.data) == (201, b"")
    assert made.headers["location"] == "http://localhost/resource_classes/CUSTOM_A"
    again = api.post("/resource_classes", {"name": "CUSTOM_A"}, version="1.2")
    assert again.status_code == 409
    assert "Conflicting resource class already exists: CUSTOM_A" in again.text


def test_putting_makes_a_class_or_confirms_it_from_1_7(api: Api) -> None:
    made, again = (api.put("/resource_classes/CUSTOM_A", version="1.7") for _ in range(2))
    assert (made.status_code, again.status_code) == (201, 204)
    for answer in (made, again):
        assert answer.headers["location"] == "http://localhost/resource_classes/CUSTOM_A"
        assert "content-type" not in answer.headers


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


def test_other_names_are_refused(api: Api) -> None:
    for name in ("CUSTOM_", "CUSTOM_a", "PONY", "VCPU", "CUSTOM_" + "X" * 249):
        answers = [
            api.post("/resource_classes", {"name": name}),
            api.put(f"/resource_classes/{name}", version="1.7"),
            api.put("/resource_classes/CUSTOM_A", {"name": name}, version="1.6"),
        ]
        for answer in answers:
            assert answer.status_code == 400, name
            assert "JSON does not validate" in answer.text


def test_a_renaming_needs_a_name(api: Api) -> None:
    ask(api, "PUT", "/resource_classes/CUSTOM_A")
    empty = api.put("/resource_classes/CUSTOM_A", version="1.6", data=b"", content_type="application/json")
    assert empty.status_code == 400
    assert "Malformed JSON" in empty.text
    assert api.put("/resource_classes/CUSTOM_A", {}, version="1.6").status_code == 400


def test_deleting_a_class(api: Api) -> None:
    ask(api, "PUT", "/resource_classes/CUSTOM_A")
    provider = make_provider(api, CUSTOM_A=1)
    used = api.delete("/resource_classes/CUSTOM_A")
    assert used.status_code == 409
    assert "Error in delete resource class: Class is in use in inventory" in used.text
    assert "CUSTOM_A" in listed(api)
    ask(api, "DELETE", f"/resource_providers/{provider}/inventories")
    assert api.delete("/resource_classes/CUSTOM_A").status_code == 204
    assert api.delete("/resource_classes/CUSTOM_A").status_code == 404
    assert api.get("/resource_classes/CUSTOM_A").status_code == 404
    standard = api.delete("/resource_classes/VCPU")
    assert standard.status_code == 400
    assert "Cannot delete standard resource class" in standard.text


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


def test_classes_are_unknown_before_1_2(api: Api) -> None:
    """A client that deletes a class at 1.0 gets a 404, and the class remains."""
    ask(api, "PUT", "/resource_classes/CUSTOM_A")
    assert api.delete("/resource_classes/CUSTOM_A", version="1.0").status_code == 404
    assert api.get("/resource_classes", version="1.1").status_code == 404
    assert "CUSTOM_A" in listed(api)


def test_lists_are_dated_from_1_15(api: Api) -> None:
    for path in ("/resource_classes", "/resource_classes/VCPU"):
        assert api.get(path, version="1.14").last_modified is None
        assert api.get(path, version="1.15").last_modified is not None
