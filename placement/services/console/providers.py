"""Search for providers, a part of the list at a time."""

from collections.abc import Mapping
from dataclasses import dataclass

from placement.domain.provider import ProviderFilter
from placement.services.console.lists import Excerpt, part_of
from placement.services.providers import ids_in_filter
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import providers as store
from placement.store.console.providers import ConsoleProvider
from placement.store.console.stocks import ClassTotals, stocks_of_providers, stocks_of_trees
from placement.store.provider_list import conditions_of

EVERY = ProviderFilter()


@dataclass(frozen=True, slots=True)
class ProviderSearch:
    """What is looked for: part of a name, or the beginning of a uuid, and what the API filters by."""

    text: str = ""
    filter: ProviderFilter = EVERY

    @property
    def is_empty(self) -> bool:
        """Whether everything is asked for: then trees are listed, not what is inside them."""
        return not self.text and self.filter == EVERY


@dataclass(frozen=True, slots=True)
class FoundProviders:
    """A part of the providers found. ``stocks``, by id: of the whole tree for a root, else the provider's own."""

    part: Excerpt[ConsoleProvider]
    stocks: Mapping[int, list[ClassTotals]]


@reads_anywhere
def found_providers(tx: Transaction, search: ProviderSearch, *, first: int, most: int) -> FoundProviders:
    """Return a part of the providers that a search finds, roots of trees first.

    Raises:
        Invalid: the filter names a resource class or trait that does not exist.
    """
    classes, traits = ids_in_filter(tx, search.filter)
    conditions = conditions_of(tx, search.filter, class_ids=classes, trait_ids=traits)
    if search.text:
        conditions.append(store.named_like(search.text))
    if search.is_empty:
        conditions.append(store.is_root())
    rows = store.listed_providers(tx, conditions, first=first, most=most + 1)
    total = store.provider_count(tx, conditions)
    part = part_of(rows, most=most, total=total)
    roots = {row.id for row in part.rows if row.is_root}
    others = {row.id for row in part.rows} - roots
    return FoundProviders(part, {**stocks_of_trees(tx, roots), **stocks_of_providers(tx, others)})
