"""Counts how many copies of a request fit, by filling small clouds in every possible way."""

from collections import Counter
from functools import cache

from placement.candidates.headroom.counting import CopyCounter
from placement.candidates.headroom.forms import CloudInForms
from placement.candidates.headroom.totals import Headroom, headroom
from placement.candidates.serving import SetsInView
from placement.cloud.columns import cloud_view
from placement.domain.search_plan import CandidateRequest, plan_for
from placement.domain.tree import AS_IT_IS
from tests.definition_of_candidates import Definition
from tests.small_clouds import Cloud, SetsInMemory, columns_of, ids_of

MAX_STATES = 200_000


class TooLarge(Exception):
    """Filling this cloud takes too long."""


def takings(request: CandidateRequest, cloud: Cloud, roots=None) -> list[dict[tuple[int, str], int]]:
    """Return the distinct amounts that the candidates of a cloud take."""
    definition, ways = Definition(request, cloud), set()
    for root in roots or {node.root for node in cloud.values()}:
        for choice in definition.candidates(root):
            taken = Counter()
            for slot, provider in zip(definition.slots, choice, strict=True):
                taken.update({(provider, name): amount for name, amount in slot.resources})
            ways.add(frozenset(taken.items()))
    return [dict(way) for way in ways]


def filled(request: CandidateRequest, cloud: Cloud, roots=None) -> int:
    """Return the largest number of copies that can be allocated one after the other.

    Allocating never creates candidates, so those of the initial cloud are sufficient.
    """
    left = {
        (node.id, name): int((stock.total - stock.reserved) * stock.allocation_ratio) - stock.used
        for node in cloud.values()
        for name, stock in node.inventories.items()
    }
    return sum(_most(part, left) for part in _parts(takings(request, cloud, roots)))


def _parts(ways):
    parts = []
    for way in ways:
        joined = [part for part in parts if any(way.keys() & other.keys() for other in part)]
        parts = [part for part in parts if part not in joined] + [[way, *[other for part in joined for other in part]]]
    return parts


def _most(ways, left) -> int:
    cells = sorted({cell for way in ways for cell in way})
    amounts = [tuple(way.get(cell, 0) for cell in cells) for way in ways]
    states = 0

    @cache
    def most(index: int, free: tuple[int, ...]) -> int:
        nonlocal states
        states += 1
        if states > MAX_STATES:
            raise TooLarge
        if index == len(amounts):
            return 0
        found = most(index + 1, free)
        rest = tuple(much - taken for much, taken in zip(free, amounts[index], strict=True))
        return max(found, 1 + most(index, rest)) if min(rest) >= 0 else found

    return most(0, tuple(left[cell] for cell in cells))


def cloud_in_forms(cloud: Cloud) -> CloudInForms:
    """Return a cloud as a snapshot would show it."""
    columns, ids = columns_of(cloud), ids_of(cloud)
    view = cloud_view(columns, AS_IT_IS)
    sets = SetsInView(SetsInMemory(cloud, ids, columns.providers), view, columns.providers)
    return CloudInForms(view.columns, sets, ids, view.like)


def counted_headroom(request: CandidateRequest, in_forms: CloudInForms) -> Headroom:
    return headroom(CopyCounter(plan_for(request), in_forms))
