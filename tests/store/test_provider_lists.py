"""Lists of providers contain exactly those that a plain loop over all of them selects, on every kind of database."""

from random import Random

import pytest

from placement.domain.provider import ProviderFilter
from placement.services.providers import providers
from placement.store.connection.database import Database
from tests.small_clouds import AGGREGATES, CLASSES, TRAITS, Cloud, Node, load, random_cloud, random_sets, some


def random_filter(chance: Random, cloud: Cloud) -> ProviderFilter:
    def maybe(share: float) -> bool:
        return chance.random() < share

    known = chance.choice([*cloud.values()])
    return ProviderFilter(
        name=f"node{known.id}" if maybe(0.1) else None,
        uuid=chance.choice([*cloud.values()]).uuid if maybe(0.1) else None,
        in_tree=chance.choice([*cloud.values()]).uuid if maybe(0.3) else None,
        resources={name: chance.randint(1, 4) for name in sorted(some(chance, CLASSES, 2))},
        required=random_sets(chance, TRAITS) if maybe(0.4) else (),
        forbidden=some(chance, TRAITS, 2) if maybe(0.3) else frozenset(),
        member_of=random_sets(chance, AGGREGATES) if maybe(0.4) else (),
        forbidden_aggregates=some(chance, AGGREGATES, 1) if maybe(0.3) else frozenset(),
    )


def passes(node: Node, wanted: ProviderFilter, cloud: Cloud) -> bool:
    """Return whether a provider passes a filter, computed in plain Python."""
    stocks = {name: node.inventories.get(name) for name in wanted.resources}
    return (
        wanted.name in (None, f"node{node.id}")
        and wanted.uuid in (None, node.uuid)
        and wanted.in_tree in (None, *[other.uuid for other in cloud.values() if other.root == node.root])
        and all(names & node.traits for names in wanted.required)
        and not wanted.forbidden & node.traits
        and all(uuids & node.aggregates for uuids in wanted.member_of)
        and not wanted.forbidden_aggregates & node.aggregates
        and all(stock is not None and stock.fits(wanted.resources[name]) for name, stock in stocks.items())
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_list_finds_what_a_plain_loop_finds(migrated: Database, seed: int) -> None:
    """Once with kept usage, once with sums; many filters select some and exclude some."""
    chance, telling = Random(seed), 0
    for _ in range(15):
        cloud = random_cloud(chance)
        load(migrated, cloud)
        for _ in range(10):
            wanted = random_filter(chance, cloud)
            expected = [node.uuid for node in cloud.values() if passes(node, wanted, cloud)]
            telling += 0 < len(expected) < len(cloud)
            for migrated.keeps_usage in (True, False):
                assert [row[0] for row in providers(migrated, wanted).rows] == expected, wanted
    assert telling > 50
