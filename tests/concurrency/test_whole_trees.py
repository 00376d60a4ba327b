"""Draining and removing hosts while others claim: no consumer is lost, and none gets in unnoticed."""

from collections.abc import Callable

from flask import Flask
from werkzeug.test import TestResponse

from placement.store.connection.database import Database
from tests.api.conftest import Api
from tests.claims import ask, claimed, entry, held, new_uuid, used
from tests.clouds import Cloud, build, provider
from tests.concurrency.together import check_books, together

ROUNDS = 6
CLIENTS = 6


def made(api: Api, number: int) -> Cloud:
    """Create a host whose root was created last: claims lock it after its devices."""
    cloud = build(api, provider(f"gpu{number}", PGPU=8), provider(f"host{number}", VCPU=100))
    body = {"name": f"gpu{number}", "parent_provider_uuid": cloud.providers[f"host{number}"]}
    ask(api, "PUT", f"/resource_providers/{cloud.providers[f'gpu{number}']}", body=body)
    return cloud


def claim(app: Flask, cloud: Cloud, consumer: str) -> Callable[[], TestResponse]:
    shares = {uuid: {"PGPU" if name.startswith("gpu") else "VCPU": 1} for name, uuid in cloud.providers.items()}
    return lambda: Api(app).put(f"/allocations/{consumer}", entry(shares))


def test_a_claim_is_either_refused_or_seen_by_the_drain(app: Flask, api: Api, served: Database) -> None:
    for number in range(ROUNDS):
        cloud, consumers = made(api, number), [new_uuid() for _ in range(CLIENTS)]
        root = cloud.providers[f"host{number}"]
        drain = lambda root=root: Api(app).post(f"/planner/v1/trees/{root}/drain", {"by": "reserve"})  # noqa: E731
        drained, *answers = together([drain, *[claim(app, cloud, consumer) for consumer in consumers]])
        assert drained.status_code == 200, drained.text
        inside = {one for one, answer in zip(consumers, answers, strict=True) if answer.status_code == 204}
        assert {answer.status_code for answer in answers} <= {204, 409}
        assert inside == {one["consumer_uuid"] for one in drained.get_json()["consumers"]}
        ask(api, "POST", f"/planner/v1/trees/{root}/enable")
        assert used(api, root)["VCPU"] == len(inside)
    check_books(served)


def test_a_host_is_not_removed_under_a_consumer_that_was_not_named(app: Flask, api: Api, served: Database) -> None:
    for number in range(ROUNDS):
        cloud = made(api, number)
        root, there = cloud.providers[f"host{number}"], claimed(api, {cloud.providers[f"gpu{number}"]: {"PGPU": 1}})
        remove = lambda root=root, there=there: Api(app).delete(  # noqa: E731
            f"/planner/v1/trees/{root}?consumers={there}"
        )
        consumers = [new_uuid() for _ in range(CLIENTS)]
        removed, *answers = together([remove, *[claim(app, cloud, consumer) for consumer in consumers]])
        inside = {one for one, answer in zip(consumers, answers, strict=True) if answer.status_code == 204}
        if inside:
            assert removed.status_code == 409, removed.text
            assert all(held(api, one) for one in (*inside, there))
        else:
            assert removed.status_code == 204, removed.text
            assert {answer.status_code for answer in answers} == {400}
    check_books(served)


def test_a_consumer_that_leaves_during_the_removal_keeps_its_new_place(app: Flask, api: Api, served: Database) -> None:
    for number in range(ROUNDS):
        cloud, other = made(api, number), made(api, number + ROUNDS)
        root, target = cloud.providers[f"host{number}"], other.providers[f"host{number + ROUNDS}"]
        vm = claimed(api, {root: {"VCPU": 1}})
        remove = lambda root=root, vm=vm: Api(app).delete(f"/planner/v1/trees/{root}?consumers={vm}")  # noqa: E731
        move = lambda vm=vm, target=target: Api(app).put(  # noqa: E731
            f"/allocations/{vm}", entry({target: {"VCPU": 1}}, 1)
        )
        removed, moved = together([remove, move])
        assert (removed.status_code, moved.status_code) in {(409, 204), (204, 409)}
        assert held(api, vm) == ({target: {"VCPU": 1}} if moved.status_code == 204 else {})
    check_books(served)
