"""The aggregates of providers."""

import uuid

import pytest

from tests.api.conftest import Api
from tests.claims import ask, make_provider

A, B = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "ab")
DASHLESS = uuid.UUID(B).hex


def path(provider: str) -> str:
    return f"/resource_providers/{provider}/aggregates"


def test_uuids_are_kept_as_they_were_written(api: Api) -> None:
    """The SDK sends them without dashes. Those that do not fit the column are normalised."""
    provider = make_provider(api)
    ask(api, "PUT", path(provider), "1.1", [DASHLESS, f"urn:uuid:{A}"])
    assert set(ask(api, "GET", path(provider), "1.1")["aggregates"]) == {DASHLESS, A}
    (found,) = ask(api, "GET", f"/resource_providers?member_of={DASHLESS}")["resource_providers"]
    assert found["uuid"] == provider
    assert ask(api, "GET", f"/resource_providers?member_of={B}")["resource_providers"] == []


def test_an_aggregate_is_found_only_as_it_was_written(api: Api) -> None:
    """Whatever the database thinks of upper case."""
    lower, upper = "8b5f1314-7431-4386-a979-9d390964a4a9", "8B5F1314-7431-4386-A979-9D390964A4A9"
    provider = make_provider(api)
    ask(api, "PUT", path(provider), "1.1", [lower])
    found = {
        query: [one["uuid"] for one in ask(api, "GET", f"/resource_providers?{query}")["resource_providers"]]
        for query in (f"member_of={lower}", f"member_of={upper}", f"member_of=!{lower}", f"member_of=!{upper}")
    }
    assert [*found.values()] == [[provider], [], [], [provider]]


@pytest.mark.any_database
def test_a_provider_may_be_in_ten_thousand_aggregates(api: Api) -> None:
    """As many as a list in a body may have."""
    provider = make_provider(api)
    aggregates = [str(uuid.UUID(int=number)) for number in range(10_000)]
    ask(api, "PUT", path(provider), "1.1", aggregates)
    assert len(ask(api, "GET", path(provider), "1.1")["aggregates"]) == 10_000
    ask(api, "PUT", path(provider), "1.1", [])
    assert ask(api, "GET", path(provider), "1.1")["aggregates"] == []
