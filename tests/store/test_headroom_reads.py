"""The headroom read from real databases equals the result of filling the clouds in every possible way."""

import pytest
from hypothesis import HealthCheck, assume, given, settings

from placement.services.planner.request_rooms import Listing, headrooms
from placement.store.connection.database import Database
from tests.examples import examples
from tests.small_clouds import AGGREGATES, load, random_situation, shares_of, situations
from tests.unit.candidates.filling import TooLarge, filled

on_one_database = examples(15, settings(suppress_health_check=[HealthCheck.function_scoped_fixture]))


@pytest.fixture
def database(migrated: Database) -> Database:
    """A database of each of the three kinds."""
    return migrated


@on_one_database
@given(situation=situations)
def test_the_headroom_is_what_filling_finds(database, situation) -> None:
    request, cloud = situation
    load(database, cloud)
    copies = headrooms(database, {"it": request}).rooms["it"].copies
    try:
        expected = filled(request, cloud)
    except TooLarge:
        assume(False)
    assert copies.least <= expected <= copies.max_count
    assert copies.is_exact or shares_of(cloud)


def test_several_requests_have_what_each_has_alone(database) -> None:
    _request, cloud = random_situation(4)
    load(database, cloud)
    requests = {str(seed): random_situation(seed)[0] for seed in range(12)}
    together = headrooms(database, requests).rooms
    alone = {name: headrooms(database, {name: request}).rooms[name].copies for name, request in requests.items()}
    assert {name: counted.copies for name, counted in together.items()} == alone


@on_one_database
@given(situation=situations)
def test_an_aggregate_has_what_filling_its_trees_finds(database, situation) -> None:
    request, cloud = situation
    load(database, cloud)
    found = dict(headrooms(database, {"it": request}, Listing(aggregates=True)).rooms["it"].aggregates)
    for aggregate in AGGREGATES:
        roots = {node.root for node in cloud.values() if aggregate in node.aggregates}
        try:
            expected = filled(request, cloud, roots) if roots else 0
        except TooLarge:
            assume(False)
        copies = found.get(aggregate)
        assert (expected == 0) if copies is None else copies.least <= expected <= copies.max_count
