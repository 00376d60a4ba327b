"""A cloud as it would be: trees left out, others added, more or less in use. Nothing is written anywhere."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.whole_cloud import PROVIDER, ROOT, PlainHolding, WholeCloud


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
    return _without(cloud, overlay.gone) if overlay.gone else cloud


def without_room(cloud: WholeCloud, providers: Collection[int]) -> WholeCloud:
    """Return a cloud in which some providers are entirely in use; trees keep their shapes."""
    return replace(cloud, holdings=[_full(row) if row[PROVIDER] in providers else row for row in cloud.holdings])


def _full(row: PlainHolding) -> PlainHolding:
    _provider, _class, capacity, used, *_units = row
    return _with_usage(row, max(capacity, used))


def _with_usage(row: PlainHolding, used: int) -> PlainHolding:
    provider, class_id, capacity, _used, low, high, step = row
    return provider, class_id, capacity, used, low, high, step


def _changed(cloud: WholeCloud, overlay: Overlay) -> list[PlainHolding]:
    names = {class_id: name for name, class_id in cloud.classes.items()}

    def changed(row: PlainHolding) -> PlainHolding:
        provider, class_id, _capacity, used, *_units = row
        return _with_usage(row, used + overlay.change(provider, names[class_id]))

    return [changed(row) if row[PROVIDER] in overlay.changes else row for row in cloud.holdings]


def _without(cloud: WholeCloud, roots: frozenset[int]) -> WholeCloud:
    """Return a cloud without some trees and what they share with others."""
    gone = {provider for provider, _parent, root in cloud.providers if root in roots}
    shares = {provider: [one for one in trees if one not in roots] for provider, trees in cloud.shares.items()}
    return replace(
        cloud,
        providers=[row for row in cloud.providers if row[ROOT] not in roots],
        holdings=[row for row in cloud.holdings if row[PROVIDER] not in gone],
        shares={provider: trees for provider, trees in shares.items() if provider not in gone and trees},
    )


def _with_more(cloud: WholeCloud, more: MoreTrees) -> WholeCloud:
    """Return a cloud with empty copies of one tree. Their providers have unused ids below 0."""
    providers, holdings = [*cloud.providers], [*cloud.holdings]
    marks, shares = {**cloud.marks}, {one: [*trees] for one, trees in cloud.shares.items()}
    members = [row for row in cloud.providers if row[ROOT] == more.like]
    inside = {provider for provider, _parent, _root in members}
    held = [row for row in cloud.holdings if row[PROVIDER] in inside]
    clones = []
    last = min(0, *[row[PROVIDER] for row in cloud.providers])
    # In the order of the originals, because siblings are told apart by it.
    originals = sorted([row[PROVIDER] for row in members], reverse=True)
    for _ in range(more.count):
        ids = {id_: last - number for number, id_ in enumerate(originals, start=1)}
        last -= len(originals)
        clones.append(ids[more.like])
        providers += [(ids[one], None if above is None else ids[above], ids[more.like]) for one, above, _ in members]
        holdings += [
            (ids[one], class_id, capacity, 0, low, high, step)
            for one, class_id, capacity, _used, low, high, step in held
        ]
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
