"""Counts how many copies of a request fit, by filling small clouds in every possible way."""

from collections import Counter
from functools import cache
from itertools import product

import numpy as np

from placement.candidates.headroom.counting import CopyCounter
from placement.candidates.headroom.forms import CloudInForms
from placement.candidates.headroom.totals import Headroom, headroom
from placement.candidates.serving import SetsInView
from placement.cloud.columns import CloudColumns, CloudRows, cloud_view, with_changes
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.search_plan import CandidateRequest, NamedIds, plan_for
from tests.clouds import SHARES
from tests.definition_of_candidates import Definition
from tests.small_clouds import AGGREGATES, CLASSES, TRAITS, Cloud, shares_of

MAX_STATES = 200_000


class TooLarge(Exception):
    """Filling this cloud takes too long."""


def takings(request: CandidateRequest, cloud: Cloud, roots=None) -> list[dict[tuple[int, str], int]]:
    """Return the distinct amounts that the candidates of a cloud take."""
    definition = Definition(request, cloud)
    found = set()
    for root in roots or {node.root for node in cloud.values()}:
        if definition.root_is_right(root):
            options = [definition.options(slot, root) for slot in definition.slots]
            for choice in product(*options):
                placed = list(zip(definition.slots, choice, strict=True))
                if definition.is_candidate(root, placed):
                    taken = Counter()
                    for slot, provider in placed:
                        taken.update({(provider, name): amount for name, amount in slot.resources})
                    found.add(frozenset(taken.items()))
    return [dict(one) for one in found]


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


def cloud_in_forms(cloud: Cloud, overlay: Overlay = AS_IT_IS) -> CloudInForms:
    """Return a cloud as a snapshot would show it."""
    real = CloudColumns.from_rows(
        CloudRows([(node.root, node.id, node.parent or 0) for node in cloud.values()], _stocks(cloud))
    )
    class_ids = {name: number for number, name in enumerate(CLASSES)}
    view = cloud_view(with_changes(real, overlay, class_ids), overlay)
    return CloudInForms(view.columns, SetsInView(_Sets(cloud, real), view, real.providers), _ids(cloud), view.like)


def counted_headroom(request: CandidateRequest, in_forms: CloudInForms) -> Headroom:
    return headroom(CopyCounter(plan_for(request), in_forms))


def _stocks(cloud: Cloud):
    return [
        (
            node.id,
            CLASSES.index(name),
            (stock.total - stock.reserved) * stock.allocation_ratio,
            stock.used,
            stock.min_unit,
            stock.max_unit,
            stock.step_size,
        )
        for node in cloud.values()
        for name, stock in node.inventories.items()
    ]


MARKS = (*TRAITS, SHARES, *AGGREGATES)


def _ids(cloud: Cloud) -> NamedIds:
    return NamedIds(
        classes={name: number for number, name in enumerate(CLASSES)},
        traits={name: MARKS.index(name) for name in (*TRAITS, SHARES)},
        aggregates={name: MARKS.index(name) for name in AGGREGATES},
        roots={node.uuid: node.root for node in cloud.values()},
        shares=bool(shares_of(cloud)),
    )


class _Sets:
    """Who has each trait, or is in each aggregate, of a small cloud."""

    def __init__(self, cloud: Cloud, columns: CloudColumns) -> None:
        self._nodes = [cloud[id_] for id_ in columns.providers.ids.tolist()]

    def with_trait(self, trait_id: int):
        return np.array([MARKS[trait_id] in node.traits for node in self._nodes], dtype=bool)

    def in_aggregate(self, aggregate_id: int):
        return np.array([MARKS[aggregate_id] in node.aggregates for node in self._nodes], dtype=bool)

    def read_traits(self, trait_ids) -> None:
        pass

    def read_aggregates(self, aggregate_ids) -> None:
        pass

    def aggregates_of(self, providers):
        return {
            node.id: [MARKS.index(name) for name in node.aggregates] for node in self._nodes if node.id in providers
        }
