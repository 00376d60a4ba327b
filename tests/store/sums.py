"""The order of trees that is kept, and what it is by definition, in a snapshot."""

from placement.candidates.frontier import KeyOrder, KeyQueue
from placement.candidates.ranking import TreeScores
from placement.candidates.tree_order import kept_order
from placement.cloud.columns import CloudColumns
from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for
from placement.services.cloud_cache import cloud_in, ids_in
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.cloud_rows import cloud_rows


def order_kept(tx: Transaction, scores: TreeScores) -> list[object] | None:
    """Return the keys of trees, in order, as the cache keeps them; None if it keeps nothing of this snapshot."""
    cloud = cloud_in(tx)
    if cloud.version is None:
        return None
    plan = plan_for(CandidateRequest(groups=(RequestGroup(resources=scores.requested),)))
    order = kept_order(cloud.reader(plan, ids_in(tx, plan)), scores, cloud.kept)
    assert isinstance(order, KeyOrder)
    return [*KeyQueue(order, filters=False)]


def true_order(tx: Transaction, scores: TreeScores) -> list[object]:
    """Return the same, read anew: of trees that have what is asked for."""
    ids = tx.names.classes.ids(tx.connection, {*scores.classes, *scores.requested})
    columns = CloudColumns.from_rows(cloud_rows(tx))
    has_any = {row[0] for row in columns.sum_rows([ids[min(scores.requested)]], ())}
    rows = columns.sum_rows([ids.get(name) for name in scores.classes], [*ids.values()])
    return sorted([scores.key_of_whole(row) for row in rows if row[0] in has_any])


def assert_same_cloud(columns: CloudColumns, stored: CloudColumns) -> None:
    """Compare what two states of a cloud show of every tree and class, and the sums of whole trees."""
    roots = {*columns.providers.roots.tolist(), *stored.providers.roots.tolist()}
    classes = {*columns.class_ids, *stored.class_ids}
    assert columns.shown(roots, classes) == stored.shown(roots, classes)
