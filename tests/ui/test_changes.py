"""Pages about the journal: what changed, who changed it, and the state of a provider at a time."""

from datetime import timedelta

import pytest
from flask import Flask

from placement.cli.demo import uuid_of
from placement.services.journal import read_trail
from placement.services.names import replace_provider_traits
from placement.services.providers import create_provider
from placement.settings import JournalSettings
from placement.store.journal.reading import EntryFilter
from tests.api.conftest import Api, serving
from tests.claims import claimed, make_provider
from tests.ui.visitor import Visitor

PAGE = "/ui/providers/"


def created(app: Flask) -> str:
    """Return what is shown for a new provider; only PostgreSQL knows its id before its row is written."""
    is_known = app.extensions["placement"].database.dialect == "postgresql"
    return "provider created" if is_known else "provider created, became a root"


def test_what_changed_is_told_with_who_did_it(app: Flask, visitor: Visitor):
    provider = make_provider(api := Api(app), VCPU=8)
    consumer = claimed(api, {provider: {"VCPU": 2}})
    api.delete(f"/allocations/{consumer}")
    stock = {"resource_provider_generation": 2, "inventories": {"VCPU": {"total": 16, "allocation_ratio": 1.5}}}
    assert api.put(f"/resource_providers/{provider}/inventories", stock).status_code == 200
    api.put(f"/resource_providers/{provider}", {"name": "renamed"})
    rows = visitor.page(PAGE + provider).cells("What changed")
    assert [row[1:] for row in rows] == [
        ["new name", "", "admin"],
        ["inventory of VCPU: total 8 → 16, allocation ratio 1 → 1.5", "", "admin"],
        ["VCPU 2 given back", consumer, "admin"],
        ["VCPU 2 taken", consumer, "admin"],
        ["inventory of VCPU: total 8", "", "admin"],
        [created(app), "", "admin"],
    ]
    assert [row[1:] for row in visitor.page("/ui/").cells("What changed")] == [["renamed", *row[1:]] for row in rows]


def test_what_others_wrote_is_told_as_such(app: Flask, visitor: Visitor):
    database, uuid = app.extensions["placement"].database, uuid_of("host")
    create_provider(database, uuid=uuid, name="host")
    replace_provider_traits(database, uuid, ["HW_NUMA_ROOT"], generation=0)
    replace_provider_traits(database, uuid, [], generation=1)
    rows = [row[1:] for row in visitor.page(PAGE + uuid).cells("What changed")]
    assert {who for *_, who in rows} == {"not this server"}
    told = ", ".join([what for what, *_ in reversed(rows)])  # together, if all happened in one second
    assert told == f"{created(app)}, trait HW_NUMA_ROOT added, trait HW_NUMA_ROOT removed"


def test_a_claim_is_one_change_of_a_tree_with_its_devices(app: Flask, demo: None, visitor: Visitor):
    amounts = {"compute1-numa1": {"VCPU": 2, "MEMORY_MB": 4096}, "compute1-nic1": {"SRIOV_NET_VF": 1}}
    consumer = claimed(Api(app), {uuid_of(name): taken for name, taken in amounts.items()})
    rows = [visitor.page(path).cells("What changed")[0][1:] for path in (PAGE + uuid_of("compute1"), "/ui/")]
    for words in ("numa1", "MEMORY_MB 4 GiB taken", "VCPU 2 taken", "nic1", "SRIOV_NET_VF 1 taken"):
        assert words in rows[0][0]
    assert rows == [[rows[0][0], consumer, "admin"], ["compute1", rows[0][0], consumer, "admin"]]
    (device,) = [row for row in visitor.page(PAGE + uuid_of("compute1-nic1")).cells("What changed") if consumer in row]
    assert device[1].endswith("nic1 SRIOV_NET_VF 1 taken")


def test_a_provider_is_shown_as_it_was(app: Flask, demo: None, visitor: Visitor):
    database, uuid = app.extensions["placement"].database, uuid_of("compute1-numa0")
    last = read_trail(database, EntryFilter(providers=(uuid,)), limit=1)[0].time
    api = Api(app)
    api.delete(f"/allocations/{uuid_of('vm0')}")
    page = visitor.page(f"{PAGE}{uuid}?at={last + timedelta(milliseconds=1):%Y-%m-%dT%H:%M:%S.%f}")
    assert page.table("As it was")["VCPU"][0] == "16"
    assert page.items("Who held it") == [uuid_of("vm0")]
    assert page.table("Inventory")["VCPU"][0] == "0"
    assert "Who held it" not in visitor.page(PAGE + uuid).text


@pytest.mark.parametrize(("at", "told"), [("yesterday", "not a time"), ("2001-02-03", "does not reach back")])
def test_a_time_of_which_nothing_is_known_is_told(demo: None, visitor: Visitor, at: str, told: str):
    page = visitor.page(f"{PAGE}{uuid_of('compute1')}?at={at}")
    assert told in page.text


def test_without_a_journal_pages_do_not_speak_of_it(database_url: str):
    with serving(database_url, journal=JournalSettings(enabled=False)) as silent:
        provider = make_provider(silent, VCPU=8)
        for path in ("/ui/", PAGE + provider, f"{PAGE}{provider}?at=2026-01-01"):
            response = Visitor(silent.app).open(path)
            assert (response.status_code, "What changed" in response.text) == (200, False)
