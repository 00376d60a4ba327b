"""Use cases of whole trees: drain a host and put it back, say who is on it and where they could go, and remove it."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from placement.domain.inventory import Claim, Provider
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.search_plan import RequestGroup
from placement.domain.tree import AS_IT_IS, Parents, upwards
from placement.errors import ConcurrentUpdate, Invalid, ProviderInUse
from placement.services.console.hosts import Hosts
from placement.services.console.tree import Target, TreeConsumer, tree_consumer
from placement.services.planner.gang import ClaimMember, Drafting, as_many_as_fit, by_difficulty
from placement.services.planner.questions import Composers, PlannerOptions
from placement.store import allocations as store
from placement.store import marks
from placement.store.connection.database import Transaction, reads, writes
from placement.store.console import tree as drawn
from placement.store.console.stocks import DISABLED
from placement.store.console.tree import PlacedAmount, TreePart
from placement.store.consumers import Consumer, advance_consumers, delete_consumers, lock_consumers
from placement.store.inventories import forget_reserved, reserve_all, unreserve
from placement.store.locks import pass_write_gate
from placement.store.providers import LockedProvider, delete_providers, lock_providers, required_provider
from placement.store.search.names import named_providers, names_in, parents_in

SHOWN = 5
"""How many consumers a refusal names."""


class DrainBy(StrEnum):
    """What keeps new consumers off a drained tree."""

    TRAIT = "trait"
    RESERVE = "reserve"


@dataclass(frozen=True, slots=True)
class _LockedTree:
    root: LockedProvider
    providers: dict[int, LockedProvider]
    parents: Parents


@writes
def drain(tx: Transaction, uuid: str, *, by: DrainBy) -> None:
    """Keep new consumers off the tree that a provider belongs to; those that are there stay.

    The trait keeps the tree out of what nova asks for. A reserve refuses every claim, and is remembered.
    ProviderNotFound if there is no such provider, ConcurrentUpdate if the tree was being rebuilt.
    """
    tree = _locked_tree(tx, uuid)
    if by is DrainBy.RESERVE:
        changed = reserve_all(tx, tree.providers)
    else:
        changed = [tree.root.id] if _set_disabled(tx, tree.root, is_disabled=True) else []
    store.advance_providers(tx, changed)


@writes
def enable(tx: Transaction, uuid: str) -> None:
    """Undo ``drain``, however it was done; what was never drained stays as it is. Raises as ``drain``."""
    tree = _locked_tree(tx, uuid)
    changed = {*unreserve(tx, tree.providers)}
    if _set_disabled(tx, tree.root, is_disabled=False):
        changed.add(tree.root.id)
    store.advance_providers(tx, changed)


@writes
def remove_tree(tx: Transaction, uuid: str, consumers: Collection[str]) -> None:
    """Delete a tree with everything allocated from it, if it is exactly these consumers that hold something there.

    What they hold elsewhere stays theirs: an instance that was rebuilt on another host leaves its old allocations.
    Invalid if the provider is not the root, ProviderInUse if the consumers are others; else raises as ``drain``.
    """
    pass_write_gate(tx.connection)
    locked = lock_consumers(tx, consumers)  # before the providers, as every claim does
    tree = _locked_tree(tx, uuid)
    if tree.root.uuid != uuid:
        raise Invalid(f"Resource provider {uuid} is not the root of its tree: {tree.root.uuid} is.")
    held = store.held_from(tx, tree.providers)
    _refuse_others(set(consumers), {row.consumer_uuid for row in held})
    store.replace_allocations(tx, held, {})
    _settle(tx, locked)
    forget_reserved(tx, tree.providers)
    levels: dict[int, list[int]] = defaultdict(list)
    for provider in tree.providers:
        levels[len([*upwards(provider, tree.parents)])].append(provider)
    delete_providers(tx, *[levels[depth] for depth in sorted(levels, reverse=True)])


def _locked_tree(tx: Transaction, uuid: str) -> _LockedTree:
    """Lock all providers of a tree in the order of their ids, so that claims on them wait."""
    root_id = required_provider(tx, uuid).root_id
    parents = parents_in(tx, [root_id])
    generations = lock_providers(tx, parents)
    # Whoever adds or moves a provider locks the root, so a tree that is still the same stays so.
    if root_id not in generations or generations.keys() != parents.keys() or parents_in(tx, [root_id]) != parents:
        raise ConcurrentUpdate("The tree was changed at the same time; try again.")
    names = names_in(tx, [root_id])[root_id]
    providers = {id_: LockedProvider(id_, names[id_][0], generation) for id_, generation in generations.items()}
    return _LockedTree(providers[root_id], providers, parents)


def _set_disabled(tx: Transaction, root: LockedProvider, *, is_disabled: bool) -> bool:
    """Give the root the trait of disabled hosts, or take it; tell whether anything changed."""
    trait = tx.names.traits.ids(tx.connection, [DISABLED])[DISABLED]
    present = {mark.id for mark in marks.traits_of(tx, root.uuid).traits}
    trait_ids = present | {trait} if is_disabled else present - {trait}
    return marks.replace_provider_traits(tx, root.id, trait_ids)


def _refuse_others(named: Collection[str], holding: Collection[str]) -> None:
    unnamed, without = sorted({*holding} - {*named}), sorted({*named} - {*holding})
    if unnamed or without:
        parts = [
            f"{verb}: {', '.join(uuids[:SHOWN])}{' and others' if len(uuids) > SHOWN else ''}"
            for verb, uuids in (("Not named but holding something", unnamed), ("named but holding nothing", without))
            if uuids
        ]
        raise ProviderInUse(f"These are not exactly the consumers of the tree. {'; '.join(parts)}.")


def _settle(tx: Transaction, consumers: dict[str, Consumer]) -> None:
    elsewhere = {row.consumer_uuid for row in store.held_by(tx, consumers)}
    advance_consumers(tx, [(consumer, consumer.owner) for uuid, consumer in consumers.items() if uuid in elsewhere])
    delete_consumers(tx, [consumer.id for uuid, consumer in consumers.items() if uuid not in elsewhere])


MAX_CONSUMERS = 1000

MAX_SHAPES = 50
"""The most kinds of consumers to find targets for: each asks the cloud anew."""

Shape = tuple[tuple[tuple[tuple[str, int], ...], int], ...]
"""What is held from each provider, class by class, and of how many providers, regardless of which these are."""


@dataclass(frozen=True, slots=True)
class Evacuation:
    """The consumers of a tree in the order in which they should move, and whether it is kept from candidates.

    ``complete``: whether these are all, and all places were searched to the end.
    """

    uuid: str
    name: str
    is_disabled: bool
    consumers: Sequence[TreeConsumer]
    complete: bool

    @property
    def stuck(self) -> int:
        """How many have no target."""
        return sum(consumer.target is None for consumer in self.consumers)


@reads
def tree_consumers(tx: Transaction, uuid: str) -> Evacuation:
    """Return the consumers of a provider's tree, without targets; ProviderNotFound if there is no such."""
    root, placed, complete = _placed(tx, uuid)
    consumers = [tree_consumer(rows) for rows in placed.values()]
    ordered = sorted(consumers, key=lambda consumer: (-sum(consumer.held.values()), consumer.uuid))
    return _evacuation(tx, root, ordered, complete=complete)


@reads
def evacuation(tx: Transaction, uuid: str, options: PlannerOptions) -> Evacuation:
    """Return the consumers of a tree with the best target for each, beside those before it; nothing is moved.

    What each holds here, provider by provider, decides, and the host must not be disabled. The traits and aggregates of
    the original request are unknown. ProviderNotFound if there is no such provider.
    """
    root, placed, complete = _placed(tx, uuid)
    shapes = {consumer: _shape(rows) for consumer, rows in placed.items()}
    # An odd database may have allocations of classes that do not exist, or of nothing.
    names = {row.class_name for rows in placed.values() for row in rows}
    classes = tx.names.classes.ids(tx.connection, names)
    askable = [
        shape
        for shape in dict.fromkeys(shapes.values())
        if shape and {name for held, _count in shape for name, _amount in held} <= classes.keys()
    ]
    requests = {shape: _request(shape) for shape in askable[:MAX_SHAPES]}
    members = [
        ClaimMember(_claim(placed[consumer][0]), requests[shape], options, explains=False)
        for consumer, shape in shapes.items()
        if shape in requests
    ]
    in_order = by_difficulty(members)
    drafting = Drafting(tx, Composers(), AS_IT_IS.without([root.id]))
    drafts, stuck = as_many_as_fit(drafting, in_order)
    trees = named_providers(tx, [draft.proposal.root for draft in drafts])
    targets = {draft.member.uuid: Target(trees[draft.proposal.root], draft.consumer.allocations) for draft in drafts}
    uuids = [
        *[member.uuid for member in in_order],
        *[uuid_ for uuid_, shape in shapes.items() if shape not in requests],
    ]
    consumers = [replace(tree_consumer(placed[uuid_]), target=targets.get(uuid_)) for uuid_ in uuids]
    were_all = len(in_order) == len(shapes) and all(plan.complete for plan, _ in stuck)
    return _evacuation(tx, root, consumers, complete=complete and were_all)


def _placed(tx: Transaction, uuid: str) -> tuple[Provider, dict[str, list[PlacedAmount]], bool]:
    provider = required_provider(tx, uuid)
    root = required_provider(tx, provider.root_uuid)
    amounts, has_more = drawn.placed_amounts(tx, TreePart(root.id), limit=MAX_CONSUMERS)
    placed: dict[str, list[PlacedAmount]] = defaultdict(list)
    for row in amounts:
        placed[row.consumer_uuid].append(row)
    return root, placed, not has_more


def _evacuation(tx: Transaction, root: Provider, consumers: Sequence[TreeConsumer], *, complete: bool) -> Evacuation:
    hosts = Hosts(tx)
    is_disabled = bool(hosts.disabled[hosts.trees_of([root.id])].any())
    return Evacuation(root.uuid, root.name or root.uuid, is_disabled, consumers, complete)


def _shape(rows: Sequence[PlacedAmount]) -> Shape:
    by_provider: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for row in rows:
        if row.used > 0:
            by_provider[row.provider_id].append((row.class_name, row.used))
    return tuple(sorted(Counter([tuple(sorted(held)) for held in by_provider.values()]).items()))


def _request(shape: Shape) -> PlannerRequest:
    """Return a request for the same again: from as many providers of each kind, on a host that is not disabled."""
    names = [""] if len(shape) == 1 and shape[0][1] == 1 else [f"_{number}" for number in range(len(shape))]
    groups = [
        PlannerGroup(group=RequestGroup(suffix=name, resources=dict(held)), count=count)
        for name, (held, count) in zip(names, shape, strict=True)
    ]
    return PlannerRequest(groups=tuple(groups), root_forbidden=frozenset({DISABLED}), limit=1)


def _claim(row: PlacedAmount) -> Claim:
    return Claim(consumer_uuid=row.consumer_uuid, allocations={}, project_id=row.project_id, user_id=row.user_id)
