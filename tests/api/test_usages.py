"""The usage of providers and projects."""

from typing import Any

import pytest
from flask import Flask

from tests.api.conftest import Api
from tests.claims import ask, claimed, entry, make_provider, new_uuid, old_entry

NOBODY = "11111111-2222-3333-4444-555555555555"


def untyped(api: Api, shares: dict[str, dict[str, int]], **changed: Any) -> str:
    """Claim as a client that does not know consumer types."""
    consumer = new_uuid()
    ask(api, "PUT", f"/allocations/{consumer}", "1.12", old_entry(shares, **changed))
    return consumer


@pytest.fixture
def provider(api: Api) -> str:
    """A provider with an instance of each of two projects; p1 also has a migration and a consumer without a type."""
    provider = make_provider(api, VCPU=100, MEMORY_MB=10000, DISK_GB=10)
    claimed(api, {provider: {"VCPU": 1, "MEMORY_MB": 100}}, project_id="p1", user_id="u1")
    claimed(api, {provider: {"VCPU": 2}}, project_id="p1", user_id="u2")
    claimed(api, {provider: {"VCPU": 4}}, project_id="p1", user_id="u1", consumer_type="MIGRATION")
    claimed(api, {provider: {"VCPU": 8}}, project_id="p2", user_id="u1")
    untyped(api, {provider: {"VCPU": 16, "MEMORY_MB": 200}}, project_id="p1", user_id="u1")
    return provider


@pytest.mark.parametrize("keeps_usage", [True, False], ids=["kept", "summed"])
def test_a_provider_shows_every_class_it_has(app: Flask, api: Api, provider: str, keeps_usage: bool) -> None:
    """Usage is summed if the triggers that keep it are missing."""
    app.extensions["placement"].database.keeps_usage = keeps_usage
    claimed(api, {provider: {"DISK_GB": 10}})
    assert api.put(f"/allocations/{NOBODY}", entry({provider: {"DISK_GB": 1}})).status_code == 409
    found = ask(api, "GET", f"/resource_providers/{provider}/usages")
    assert found == {"usages": {"VCPU": 31, "MEMORY_MB": 300, "DISK_GB": 10}, "resource_provider_generation": 7}


def test_consumers_are_counted_by_their_type(api: Api, provider: str) -> None:
    """The reference answers 500 on PostgreSQL. A consumer of several classes or providers counts once."""
    instances = {"VCPU": 3, "MEMORY_MB": 100, "consumer_count": 2}
    migrations = {"VCPU": 4, "consumer_count": 1}
    untyped = {"VCPU": 16, "MEMORY_MB": 200, "consumer_count": 1}
    expected: dict[str, dict[str, dict[str, int]]] = {
        "project_id=p1": {"INSTANCE": instances, "MIGRATION": migrations, "unknown": untyped},
        "project_id=p1&user_id=u1": {
            "INSTANCE": {"VCPU": 1, "MEMORY_MB": 100, "consumer_count": 1},
            "MIGRATION": migrations,
            "unknown": untyped,
        },
        "project_id=p1&consumer_type=INSTANCE": {"INSTANCE": instances},
        "project_id=p1&consumer_type=unknown": {"unknown": untyped},
        "project_id=p1&consumer_type=all": {"all": {"VCPU": 23, "MEMORY_MB": 300, "consumer_count": 4}},
        "project_id=p1&user_id=u2&consumer_type=all": {"all": {"VCPU": 2, "consumer_count": 1}},
        "project_id=p1&consumer_type=PONY": {},
        "project_id=p1&consumer_type=ALL": {},
        "project_id=p1&consumer_type=UNKNOWN": {},
        "project_id=p2&consumer_type=unknown": {},
        "project_id=nobody&consumer_type=all": {},
        "project_id=nobody": {},
    }
    assert {query: ask(api, "GET", f"/usages?{query}", "1.38")["usages"] for query in expected} == expected
