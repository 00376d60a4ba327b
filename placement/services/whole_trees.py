"""Use cases of whole trees: take a host out of service, put it back, and remove one with all that is left on it."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from placement.domain.places import Parents, upwards
from placement.errors import ConcurrentUpdate, Invalid, ProviderInUse
from placement.store import allocations as store
from placement.store import marks
from placement.store.connection.unit_of_work import Transaction, writes
from placement.store.console.stocks import DISABLED
from placement.store.consumers import Consumer, advance_consumers, delete_consumers, lock_consumers
from placement.store.inventories import forget_reserved, reserve_all, unreserve
from placement.store.locks import pass_write_gate
from placement.store.providers import LockedProvider, delete_provider, lock_providers, required_provider
from placement.store.search.names import names_in, parents_in

SHOWN = 5
"""How many consumers a refusal names."""


class DrainBy(StrEnum):
    """What keeps new consumers off a drained tree."""

    TRAIT = "trait"
    RESERVE = "reserve"


@dataclass(frozen=True, slots=True)
class _LockedTree:
    """A tree, all of whose providers are locked: its root, its providers by id, and their parents."""

    root: LockedProvider
    providers: dict[int, LockedProvider]
    parents: Parents


@writes
def drain(tx: Transaction, uuid: str, *, by: DrainBy) -> None:
    """Keep new consumers off the tree that a provider belongs to; those that are there stay.

    The trait keeps the tree out of what nova asks for. A reserve refuses every claim, and is remembered.

    Raises:
        ProviderNotFound: there is no such provider.
        ConcurrentUpdate: the tree was being rebuilt.
    """
    tree = _locked_tree(tx, uuid)
    if by is DrainBy.RESERVE:
        changed = [provider.id for provider in tree.providers.values() if reserve_all(tx, provider)]
    else:
        changed = [tree.root.id] if _set_disabled(tx, tree.root, is_disabled=True) else []
    store.advance_providers(tx, changed)


@writes
def enable(tx: Transaction, uuid: str) -> None:
    """Undo ``drain``, however it was done; what was never drained stays as it is.

    Raises:
        ProviderNotFound: there is no such provider.
        ConcurrentUpdate: the tree was being rebuilt.
    """
    tree = _locked_tree(tx, uuid)
    changed = {provider.id for provider in tree.providers.values() if unreserve(tx, provider)}
    if _set_disabled(tx, tree.root, is_disabled=False):
        changed.add(tree.root.id)
    store.advance_providers(tx, changed)


@writes
def remove_tree(tx: Transaction, uuid: str, consumers: Collection[str]) -> None:
    """Delete a tree with everything allocated from it, if it is exactly these consumers that hold something there.

    What they hold elsewhere stays theirs: an instance that was rebuilt on another host leaves its old allocations.

    Raises:
        ProviderNotFound: there is no such provider.
        Invalid: the provider is not the root of its tree.
        ProviderInUse: the consumers are others.
        ConcurrentUpdate: the tree was being rebuilt.
    """
    pass_write_gate(tx.connection)
    known = lock_consumers(tx, consumers)  # before the providers, as every claim does
    tree = _locked_tree(tx, uuid)
    if tree.root.uuid != uuid:
        raise Invalid(f"Resource provider {uuid} is not the root of its tree: {tree.root.uuid} is.")
    held = store.held_from(tx, tree.providers)
    _refuse_others(set(consumers), {row.consumer_uuid for row in held})
    store.replace_allocations(tx, held, {})
    _settle(tx, known)
    depths = {provider: len([*upwards(provider, tree.parents)]) for provider in tree.providers}
    for provider in sorted(depths, key=depths.__getitem__, reverse=True):
        forget_reserved(tx, tree.providers[provider])
        delete_provider(tx, provider)


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
    has = marks.traits_of(tx, root.uuid)
    present = {one.id for one in has.traits} if has else set()
    wanted = present | {trait} if is_disabled else present - {trait}
    return marks.replace_provider_traits(tx, root.id, wanted)


def _refuse_others(named: Collection[str], holding: Collection[str]) -> None:
    """Refuse unless the consumers that were named are those that hold something."""
    unnamed, without = sorted({*holding} - {*named}), sorted({*named} - {*holding})
    if unnamed or without:
        parts = [
            f"{verb}: {', '.join(uuids[:SHOWN])}{' and others' if len(uuids) > SHOWN else ''}"
            for verb, uuids in (("Not named but holding something", unnamed), ("named but holding nothing", without))
            if uuids
        ]
        raise ProviderInUse(f"These are not exactly the consumers of the tree. {'; '.join(parts)}.")


def _settle(tx: Transaction, consumers: dict[str, Consumer]) -> None:
    """Delete the consumers that hold nothing any more, and increment the generations of the others."""
    elsewhere = {row.consumer_uuid for row in store.held_by(tx, consumers)}
    advance_consumers(tx, [(consumer, consumer.owner) for uuid, consumer in consumers.items() if uuid in elsewhere])
    delete_consumers(tx, [consumer.id for uuid, consumer in consumers.items() if uuid not in elsewhere])
