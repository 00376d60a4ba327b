"""Reading trees gives the same result however far apart the ids of their providers are."""

from sqlalchemy import insert

from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.search.summaries import Summaries, tree_summaries
from placement.store.tables import inventories, resource_providers

OF_EACH = 300
"""Providers in each tree; two trees exceed the number listed individually when their ids are close together."""

UNITS = {"total": 8, "reserved": 0, "min_unit": 1, "max_unit": 8, "step_size": 1, "allocation_ratio": 1.0}


@reads
def found(tx: Transaction, roots: set[int]) -> Summaries:
    return tree_summaries(tx, roots)


def test_trees_far_apart_come_with_all_that_they_have_and_nothing_in_between(migrated: Database) -> None:
    trees = {root: range(root, root + OF_EACH) for root in (1, 5_000, 9_000)}
    with migrated.writer.begin() as connection:
        for root, ids in trees.items():
            names = [{"id": one, "uuid": f"{one:036}", "name": f"n{one}", "generation": 0} for one in ids]
            places = [{"root_provider_id": root, "parent_provider_id": root if one > root else None} for one in ids]
            rows = [name | place for name, place in zip(names, places, strict=True)]
            connection.execute(insert(resource_providers), rows)
            stocks = [{"resource_provider_id": one, "resource_class_id": 0, **UNITS} for one in ids]
            connection.execute(insert(inventories), stocks)
    summaries = found(migrated, {1, 9_000})
    assert summaries.members.keys() == summaries.stocks.keys() == {*trees[1], *trees[9_000]}
