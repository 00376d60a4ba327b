"""What a worker keeps of a cloud, and what that is by definition, in a snapshot."""

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.ranking import Ranking, TreeScores
from placement.candidates.tree_order import KeyOrder, KeyQueue, kept_order
from placement.cloud.columns import CloudColumns
from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for
from placement.services.cloud_cache import cloud_in, ids_in
from placement.store.allocations import supplies
from placement.store.connection.database import Transaction, reads, writes
from placement.store.search.cloud_rows import cloud_rows
from placement.store.search.names import names_in
from tests.store.rows import VCPU

ONE_VCPU = TreeScores({"VCPU": 1}, Ranking(RankingProfile()))
TWO_CLASSES = TreeScores({"VCPU": 5, "MEMORY_MB": 1}, Ranking(RankingProfile(compactness=0)))


def order_kept(tx: Transaction, scores: TreeScores = ONE_VCPU) -> list[object] | None:
    """Return the keys of trees, in order, as the cache keeps them; None if it keeps nothing of this snapshot."""
    cloud = cloud_in(tx)
    if cloud.version is None:
        return None
    plan = plan_for(CandidateRequest(groups=(RequestGroup(resources=scores.requested),)))
    order = kept_order(cloud.reader(plan, ids_in(tx, plan)), scores, cloud.kept)
    assert isinstance(order, KeyOrder)
    return [*KeyQueue(order, filters=False)]


def true_order(tx: Transaction, scores: TreeScores = ONE_VCPU) -> list[object]:
    """Return the same, read anew: of trees that have what is asked for."""
    ids = tx.names.classes.ids(tx.connection, {*scores.classes, *scores.requested})
    columns = CloudColumns.from_rows(cloud_rows(tx))
    has_any = {row[0] for row in columns.sum_rows([ids[min(scores.requested)]], ())}
    rows = columns.sum_rows([ids.get(name) for name in scores.classes], [*ids.values()])
    return sorted([scores.key_of_whole(row) for row in rows if row[0] in has_any])


cached_order = reads(order_kept)
order_as_read = reads(true_order)


def assert_same_cloud(columns: CloudColumns, stored: CloudColumns) -> None:
    """Compare what two states of a cloud show of every tree and class, and the sums of whole trees."""
    roots = {*columns.providers.roots.tolist(), *stored.providers.roots.tolist()}
    classes = {*columns.class_ids, *stored.class_ids}
    assert columns.shown(roots, classes) == stored.shown(roots, classes)


def assert_as_stored(tx: Transaction) -> None:
    """Compare the columns, names and orders that are kept with the rows of the same snapshot."""
    cloud, rows = cloud_in(tx), CloudColumns.from_rows(cloud_rows(tx))
    assert_same_cloud(cloud.columns, rows)
    roots = rows.providers.roots.tolist()
    kept = cloud.names.of_trees(roots)
    assert {root: kept[root] for root in roots} == names_in(tx, roots)
    for scores in (ONE_VCPU, TWO_CLASSES):
        assert order_kept(tx, scores) in (None, true_order(tx, scores))


@writes
def used_of_the_first(tx: Transaction) -> int:
    """Return how many VCPUs of the first provider are in use, as a claim counts them."""
    return supplies(tx, [1])[1, VCPU].used
