"""Places for all members of a gang, or for none.

First each takes the best that the ones before have left, the largest first. That is fast, and mostly enough. Where a
member finds nothing, the members are placed again by a search that goes back: a member that stands in the way of
another moves on to its next best place, in the same tree or in another one.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from placement.domain.planner_request import PlannerRequest
from placement.services.planner.composers import Composers, Prepared
from placement.services.planner.placing import ClaimMember, ExhaustedTrees, Placing
from placement.services.planner.records import Claimed
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.search.planner_trees import free_amounts

PLACES_OF_A_TREE = 16
"""So many places in a tree are tried for a member."""

PLACES_OF_A_GANG = 100
"""So many places are tried in all: each is an allocation that may be taken back."""

ClaimedByConsumer = dict[str, Claimed]
"""What members hold, by the uuid of the consumer."""


class Stuck(Exception):
    """A member found no place beside those before it.

    Args:
        member: the member.
        contended: whether others were at work: trees may have been passed over.
        complete: whether everything was tried.
    """

    def __init__(self, member: ClaimMember, *, contended: bool, complete: bool) -> None:
        super().__init__()
        self.member = member
        self.contended = contended
        self.complete = complete


def by_difficulty(members: Sequence[ClaimMember]) -> list[ClaimMember]:
    """Return members in the order in which they are placed: who waits for room must not find it crumbled."""
    return sorted(members, key=_difficulty, reverse=True)


def _difficulty(member: ClaimMember) -> tuple[int, int]:
    request = member.request
    amount = sum(request.requested.values()) + sum(request.paths.values())
    rules = [rule.required for rule in request.affinity] + [rule.required for rule in request.within]
    return amount, sum(rules) + len(request.exclusive)


def one_by_one(tx: Transaction, members: Sequence[ClaimMember], composers: Composers) -> ClaimedByConsumer:
    """Give each member in turn the best that is left. Each has its share of the steps that are left.

    Raises:
        Stuck: one found nothing.
    """
    placed: ClaimedByConsumer = {}
    exhausted: dict[Prepared, ExhaustedTrees] = defaultdict(dict)  # Members only take: what has no room gets none.
    for number, member in enumerate(members):
        composers.share_out(among=len(members) - number)
        placing = Placing(tx, member, composers, of_gang=len(members) > 1)
        claimed = placing.best(exhausted[placing.prepared])
        if claimed is None:
            raise Stuck(member, contended=placing.skipped_locked_tree, complete=placing.is_complete)
        placed[member.consumer.consumer_uuid] = claimed
    return placed


def together(tx: Transaction, members: Sequence[ClaimMember], composers: Composers) -> ClaimedByConsumer:
    """Place all members wherever it takes for all to have a place.

    Raises:
        Stuck: there is no way, or none was found in the bounds of the search.
    """
    search = _GangSearch(tx, members, composers)
    try:
        placed = search.placed(members)
    except _OutOfPlaces:
        raise Stuck(members[0], contended=search.skipped_locked_tree, complete=False) from None
    if placed is None:
        raise Stuck(members[0], contended=search.skipped_locked_tree, complete=search.is_complete)
    return placed


@reads
def may_fit(tx: Transaction, members: Sequence[ClaimMember]) -> bool:
    """Tell whether there is as much of each class as all members want: else nothing has to be searched."""
    wanted: Counter[str] = Counter()
    for member in members:
        wanted.update(member.request.requested)
    ids = tx.names.classes.ids(tx.connection, set(wanted))
    free = free_amounts(tx, sorted(ids.values()))
    return all(amount <= free.get(ids[name], 0) for name, amount in wanted.items())


class _OutOfPlaces(Exception):
    """As many places as may be tried have been tried."""


class _Left(NamedTuple):
    """A tree that has nothing for members that want this.

    There is no room; or with one of them in any place there, the others were stuck. Members that want the same may
    change places, so no other one of them need be there.
    """

    request: PlannerRequest
    root: int


class _GangSearch:
    """Goes through the places of members, depth first."""

    def __init__(self, tx: Transaction, members: Sequence[ClaimMember], composers: Composers) -> None:
        self._tx = tx
        self._composers = composers
        self._places_left = PLACES_OF_A_GANG
        # As long as nobody is placed: later none of them has more. Reading them for each place would take long.
        self._roots: dict[Prepared, list[int]] = {}
        for placing in map(self._placing, members):
            if placing.prepared not in self._roots:
                self._roots[placing.prepared] = list(placing.roots())
        self.is_complete = True
        self.skipped_locked_tree = False

    def placed(self, members: Sequence[ClaimMember], left: tuple[_Left, ...] = ()) -> ClaimedByConsumer | None:
        """Return places for members beside those that are allocated already; None if there are none.

        Raises:
            _OutOfPlaces: too many were tried.
        """
        if not members:
            return {}
        first, rest = members[0], members[1:]
        tried: list[int] = []

        def with_the_rest(root: int, claimed: Claimed) -> ClaimedByConsumer | None:
            self._places_left -= 1
            if self._places_left < 0:
                raise _OutOfPlaces
            if root not in tried:
                tried.append(root)
            done = tuple(_Left(first.request, one) for one in (*tried, *placing.exhausted) if one != root)
            found = self.placed(rest, (*left, *done))
            return None if found is None else {first.consumer.consumer_uuid: claimed, **found}

        self._composers.share_out(among=len(members))
        placing = self._placing(first)
        without = {one.root for one in left if one.request == first.request}
        roots = [root for root in self._roots[placing.prepared] if root not in without]
        found = placing.first_that(with_the_rest, roots)
        self.skipped_locked_tree = self.skipped_locked_tree or placing.skipped_locked_tree
        self.is_complete = self.is_complete and placing.is_complete
        return found

    def _placing(self, member: ClaimMember) -> Placing:
        return Placing(self._tx, member, self._composers, of_gang=True, most=PLACES_OF_A_TREE)
