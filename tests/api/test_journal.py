"""The journal: what changed, by whom, and what was at a time."""

import random
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import text

from placement.services.journal import prune
from placement.settings import JournalSettings
from placement.store.tables import placement_journal, utc_now
from tests.api.conftest import Api, serving, wait_for_background
from tests.api.test_mirror import change
from tests.claims import claimed, make_provider, new_uuid

PATH = "/planner/v1/journal"


def claim(api: Api, provider: str, *, project: str = "project", amount: int = 2) -> str:
    return claimed(api, {provider: {"VCPU": amount}}, project_id=project, user_id="owner")


def entries(api: Api, query: str = "", **options: Any) -> list[dict[str, Any]]:
    answer = api.get(PATH + query, **options)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.get_json()["entries"]
    return found


def test_a_claim_and_its_end_are_told_with_who_did_it(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    consumer = claim(api, provider)
    ended = api.delete(f"/allocations/{consumer}")
    newest = [one for one in entries(api, f"?consumer={consumer}") if one["kind"] == "allocation"]
    assert [(one["action"], one.get("old_amount"), one.get("new_amount")) for one in newest] == [
        ("deleted", 2, None),
        ("created", None, 2),
    ]
    last = newest[0]
    assert last["request_id"] == ended.headers["x-openstack-request-id"]
    assert (last["by_user_id"], last["route"]) == ("admin", "DELETE /allocations/<consumer_uuid>")
    assert (last["project_id"], last["user_id"], last["consumer_type"]) == ("project", "owner", "INSTANCE")
    assert (last["provider_uuid"], last["resource_class"]) == (provider, "VCPU")


def put_again(api: Api, consumer: str, **amounts: int) -> list[tuple[Any, ...]]:
    """Claim other amounts for a consumer; return the new rows of the journal, oldest first."""
    cursor = api.get(f"{PATH}?after=now").get_json()["cursor"]
    body = api.get(f"/allocations/{consumer}").get_json()
    ((provider, held),) = body["allocations"].items()
    body["allocations"] = {provider: {"resources": held["resources"] | amounts}}
    answer = api.put(f"/allocations/{consumer}", body)
    assert answer.status_code == 204, answer.text
    added = api.get(f"{PATH}?after={cursor}").get_json()["entries"]
    return [(one["kind"], one["action"], one.get("old_amount"), one.get("new_amount")) for one in added]


def test_a_claim_that_changes_nothing_tells_the_generations_alone(api: Api) -> None:
    consumer = claim(api, make_provider(api, VCPU=8))
    told = put_again(api, consumer)
    assert sorted(row[:2] for row in told) == [("consumer", "changed"), ("generation", "changed")]


def test_a_resize_is_told_as_one_change_with_before_and_after(api: Api) -> None:
    consumer = claim(api, make_provider(api, VCPU=8, DISK_GB=10))
    told = [row for row in put_again(api, consumer, VCPU=3, DISK_GB=5) if row[0] == "allocation"]
    assert told == [("allocation", "changed", 2, 3), ("allocation", "created", None, 5)]


def test_a_host_tells_what_became_of_it(api: Api) -> None:
    parent, child = make_provider(api), make_provider(api, VCPU=8)
    api.put(f"/resource_providers/{child}", {"name": "moved", "parent_provider_uuid": parent})
    told = entries(api, f"?provider={child}")
    moved = next(one for one in told if one["kind"] == "provider" and one["action"] == "changed")
    assert moved["old"] | moved["new"] == {
        "name": "moved",
        "parent_provider_uuid": parent,
        "root_provider_uuid": parent,
    }
    assert {"inventory", "provider", "generation"} <= {one["kind"] for one in told}


def test_pages_lead_from_the_newest_to_the_oldest(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    for _ in range(3):
        claim(api, provider)
    every, paged, query = entries(api, "?limit=1000"), [], "?limit=3"
    while True:
        answer = api.get(PATH + query).get_json()
        paged += answer["entries"]
        if "before" not in answer:
            break
        query = f"?limit=3&before={answer['before']}"
    assert paged == every


def test_a_cursor_gives_everything_once_and_then_what_is_new(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    claim(api, provider)
    cursor, read = "0", []
    while True:
        answer = api.get(f"{PATH}?after={cursor}&limit=2").get_json()
        cursor = answer["cursor"]
        read += answer["entries"]
        if not answer["entries"]:
            break
    assert [one["id"] for one in read] == [one["id"] for one in reversed(entries(api, "?limit=1000"))]
    now = api.get(f"{PATH}?after=now").get_json()["cursor"]
    consumer = claim(api, provider)
    for place in (cursor, now):
        new = entries(api, f"?after={place}")
        assert {one.get("consumer_uuid", consumer) for one in new} == {consumer}
        assert len(new) == 3
    for spelling in (provider, provider.upper()):
        assert len(entries(api, f"?after={now}&provider={spelling}")) == 2


def test_a_plus_that_became_a_space_is_told(api: Api) -> None:
    answer = api.get(f"{PATH}?since=2026-01-01T00:00:00+02:00")
    assert answer.status_code == 400
    assert "+ is written %2B" in answer.text


def test_times_narrow_it(api: Api) -> None:
    claim(api, make_provider(api, VCPU=8))
    assert entries(api, "?since=2999-01-01") == entries(api, "?until=2001-01-01T00:00:00%2B02:00") == []
    assert entries(api, "?since=2001-01-01T00:00:00Z&until=2999-01-01") == entries(api)


def test_a_reader_sees_what_is_about_the_own_project(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    own = claim(api, provider, project="mine")
    claim(api, provider, project="yours")
    reader = {"x-auth-token": "somebody:mine", "x-roles": "reader", "x-project-id": "mine"}
    told = entries(api, headers=reader)
    assert {one["consumer_uuid"] for one in told} == {own}
    assert entries(api, "?project=mine", headers=reader) == told
    assert api.get(f"{PATH}?project=yours", headers=reader).status_code == 403
    nobody = reader | {"x-roles": "member"}
    assert api.get(PATH, headers=nobody).status_code == 403


def test_a_cursor_whose_row_was_pruned_is_gone(app: Flask, api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    cursor = api.get(f"{PATH}?after=now").get_json()["cursor"]
    claim(api, provider)
    api.get(f"{PATH}?after=now")
    database = app.extensions["placement"].database
    assert prune(database, keep_days=1) == 0
    before = len(entries(api, "?limit=1000"))
    assert prune(database, keep_days=0) >= before - 2
    assert prune(database, keep_days=0) == 0
    assert len(entries(api)) > 0
    assert api.get(f"{PATH}?after={cursor}").status_code == 410


@pytest.mark.parametrize(("keep_days", "is_deleted"), [(90, True), (0, False)])
def test_the_server_deletes_rows_beyond_an_age_if_that_is_configured(
    database_url: str, *, keep_days: int, is_deleted: bool
) -> None:
    with serving(database_url, journal=JournalSettings(keep_days=keep_days)) as api:
        make_provider(api, VCPU=8)
        old = len(entries(api, "?limit=1000"))
        with api.database.engine.begin() as connection:
            connection.execute(placement_journal.update().values(time=utc_now() - timedelta(days=91)))
        claim(api, make_provider(api, VCPU=8))
        every = entries(api, "?limit=1000")
        for work in api.server.background:
            work.due = 0
        api.get("/resource_providers")
        wait_for_background(api.app)
        assert entries(api, "?limit=1000") == (every[:-old] if is_deleted else every)


def test_without_a_journal_there_is_nothing_to_read(database_url: str) -> None:
    with serving(database_url, journal=JournalSettings(enabled=False)) as silent:
        claim(silent, make_provider(silent, VCPU=8))
        assert silent.get(PATH).status_code == 404


def test_a_stock_that_a_consumer_holds_twice_is_held_once_after_its_next_claim(api: Api) -> None:
    """Nothing in the schema forbids two rows."""
    consumer = claim(api, make_provider(api, VCPU=8))
    with api.database.writer.begin() as connection:
        names = "resource_provider_id, resource_class_id, consumer_id, used"
        connection.execute(text(f"INSERT INTO allocations ({names}) SELECT {names} FROM allocations"))
    told = [row for row in put_again(api, consumer, VCPU=2) if row[0] == "allocation"]
    assert told == [("allocation", "deleted", 2, None)]


def state(api: Api, provider: str) -> dict[str, Any] | None:
    """Return what the plain API shows of a provider now."""
    path = f"/resource_providers/{provider}"
    if api.get(path).status_code == 404:
        return None
    held = api.get(f"{path}/allocations").get_json()["allocations"]
    inventories = api.get(f"{path}/inventories").get_json()["inventories"]
    return {
        "inventories": inventories,
        "holders": {consumer: one["resources"] for consumer, one in held.items()},
        "traits": sorted(api.get(f"{path}/traits").get_json()["traits"]),
        "aggregates": sorted(api.get(f"{path}/aggregates").get_json()["aggregates"]),
    }


def newest(api: Api) -> datetime:
    """Return a moment just after the newest row: times have at least millisecond precision."""
    (row,) = api.get(f"{PATH}?limit=1").get_json()["entries"]
    return datetime.fromisoformat(row["time"]).replace(tzinfo=None) + timedelta(milliseconds=1)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.any_database)])
def test_every_earlier_state_is_told_as_it_was(api: Api, seed: int) -> None:
    choice, consumers = random.Random(seed), list[str]()
    providers = [make_provider(api, VCPU=8) for _ in range(3)]
    watched = list(providers)
    moments = []
    for _ in range(25):
        change(api, choice, providers, consumers)
        moments.append((newest(api), {provider: state(api, provider) for provider in watched}))
    checked = 0
    for (moment, states), (later, _) in pairwise(moments):
        if later <= moment + timedelta(milliseconds=5):
            continue  # the next change came at the same moment
        checked += 1
        for provider, expected in states.items():
            answer = api.get(f"{PATH}/at?provider={provider}&time={moment.isoformat()}Z")
            if expected is None:
                assert answer.status_code == 404
            else:
                told = answer.get_json()
                assert {name: told[name] for name in expected} == expected
    assert checked > 3


def test_what_cannot_be_told_is_refused(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    assert api.get(f"{PATH}/at?provider={provider}&time=2001-01-01").status_code == 410
    assert api.get(f"{PATH}/at?provider={new_uuid()}&time=2999-01-01").status_code == 404
    assert api.get(f"{PATH}/at?provider={provider}").status_code == 400
    assert api.get(f"{PATH}/at?provider={provider}&time=soon").status_code == 400
    reader = {"x-auth-token": "somebody:mine", "x-roles": "reader"}
    assert api.get(f"{PATH}/at?provider={provider}&time=2999-01-01", headers=reader).status_code == 403
