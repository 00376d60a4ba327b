"""A cloud as it would be: trees left out, others added, more or less in use. Nothing is written anywhere."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.whole_cloud import PlainHolding, WholeCloud


@dataclass(frozen=True, slots=True)
class MoreTrees:
    """Empty trees like another one: its root, and how many."""

    like: int
    count: int


def as_it_would_be(cloud: WholeCloud, overlay: Overlay = AS_IT_IS, more: Sequence[MoreTrees] = ()) -> WholeCloud:
    """Return a cloud with the changes of an overlay, and with more trees.

    Providers of the further trees have ids below 0. What shares with a tree shares with its copies, too.
    """
    for addition in more:
        cloud = _with_more(cloud, addition)
    if overlay.changes:
        cloud = replace(cloud, holdings=_changed(cloud, overlay))
    return _without(cloud, overlay.avoided) if overlay.avoided else cloud


def without_room(cloud: WholeCloud, providers: Collection[int]) -> WholeCloud:
    """Return a cloud in which some providers are entirely in use; trees keep their shapes."""
    return replace(cloud, holdings=[_full(row) if row[0] in providers else row for row in cloud.holdings])


def _full(row: PlainHolding) -> PlainHolding:
    return (row[0], row[1], row[2], max(row[2], row[3]), *row[4:])


def _changed(cloud: WholeCloud, overlay: Overlay) -> list[PlainHolding]:
    names = {class_id: name for name, class_id in cloud.classes.items()}
    return [
        (row[0], row[1], row[2], row[3] + overlay.changes[row[0]].get(names[row[1]], 0), *row[4:])
        if row[0] in overlay.changes
        else row
        for row in cloud.holdings
    ]


def _without(cloud: WholeCloud, roots: frozenset[int]) -> WholeCloud:
    """Return a cloud without some trees and what they share with others."""
    gone = {provider for provider, _parent, root in cloud.providers if root in roots}
    shares = {provider: [one for one in trees if one not in roots] for provider, trees in cloud.shares.items()}
    return replace(
        cloud,
        providers=[row for row in cloud.providers if row[2] not in roots],
        holdings=[row for row in cloud.holdings if row[0] not in gone],
        shares={provider: trees for provider, trees in shares.items() if provider not in gone and trees},
    )


def _with_more(cloud: WholeCloud, more: MoreTrees) -> WholeCloud:
    providers, holdings = [*cloud.providers], [*cloud.holdings]
    marks, shares = {**cloud.marks}, {one: [*trees] for one, trees in cloud.shares.items()}
    members = [row for row in cloud.providers if row[2] == more.like]
    inside = {provider for provider, _parent, _root in members}
    held = [row for row in cloud.holdings if row[0] in inside]
    clones = []
    for _ in range(more.count):
        ids = _fresh_ids(cloud, providers, members)
        clones.append(ids[more.like])
        providers += [(ids[one], None if above is None else ids[above], ids[more.like]) for one, above, _ in members]
        holdings += [(ids[row[0]], row[1], row[2], 0, *row[4:]) for row in held]
        marks |= {ids[one]: cloud.marks[one] for one in inside if one in cloud.marks}
        for provider, trees in cloud.shares.items():
            if more.like in trees:
                shares[provider].append(ids[more.like])
            if provider in ids:
                shares[ids[provider]] = [ids.get(one, one) for one in trees]
    aggregates = {
        uuid: roots.union(clones) if more.like in roots else roots for uuid, roots in cloud.aggregates.items()
    }
    return replace(
        cloud,
        providers=providers,
        holdings=holdings,
        marks=marks,
        shares=shares,
        aggregates=aggregates,
        like={**cloud.like, **dict.fromkeys(clones, more.like)},
    )


def _fresh_ids(
    cloud: WholeCloud, providers: Sequence[tuple[int, int | None, int]], members: Sequence[tuple[int, int | None, int]]
) -> Mapping[int, int]:
    """Return an unused id below 0 for each provider of one more tree."""
    last = -(len(providers) - len(cloud.providers)) - 1 - max([0, *[-row[0] for row in cloud.providers]])
    # In the order of the originals, because siblings are told apart by it.
    return {id_: last - number for number, id_ in enumerate(sorted([row[0] for row in members], reverse=True))}
