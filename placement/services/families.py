"""The resource classes of a cloud, for profiles that name scarce ones by family."""

from placement.allocators.entries import WILDCARD
from placement.candidates.ranking import Ranking
from placement.store.connection.unit_of_work import Transaction
from placement.store.resource_classes import all_classes


def classes_in_families(tx: Transaction, ranking: Ranking) -> list[str]:
    """Return all classes if the profile names scarce ones by family; otherwise none, since none is needed."""
    strategy = ranking.profile.strategy
    named = [*(strategy.sra.resources if strategy.sra else ())]
    named += strategy.proportional.reserve if strategy.proportional else ()
    return [class_.name for class_ in all_classes(tx)] if any(name.endswith(WILDCARD) for name in named) else []
