"""Headroom as JSON."""

from collections.abc import Iterable, Mapping
from typing import Any

from placement.allocators.bundle_packing import Copies
from placement.api.planner.fair_share_json import named
from placement.candidates.headroom.totals import Headroom
from placement.services.fair_share.copies_by_queue import ShareRoom
from placement.services.planner.request_rooms import Headrooms, HostModel, Named, RequestRoom
from placement.settings.planner.values import FairShareSettings

HeadroomJson = dict[str, Any]


def headrooms_json(found: Headrooms) -> HeadroomJson:
    """Return the headroom of each request."""
    shown = {
        "headroom": {name: counted_json(counted, found) for name, counted in found.of.items()},
        "complete": all(counted.copies.is_exact for counted in found.of.values()),
    }
    return shown if found.mix is None else {**shown, "mix": _copies(found.mix)}


def counted_json(counted: RequestRoom, found: Headrooms) -> HeadroomJson:
    """Return the headroom of one request."""
    room = counted.found
    return {
        **_copies(counted.copies),
        "trees_with_room": room.with_room,
        "trees_without_room": room.without_room,
        "lacking": [{"resource_classes": list(names), "trees": trees} for names, trees in room.lacking.items()],
        "message": message_of(room),
        "stranded": dict(room.stranded),
        "one_more": [_model(model, found.providers) for model in counted.models],
        "trees": [{**_named(root, found.providers), **_copies(copies)} for root, copies in counted.trees],
        "aggregates": [{"uuid": uuid, **_copies(copies)} for uuid, copies in counted.aggregates],
    }


def shares_json(rooms: Iterable[ShareRoom], settings: FairShareSettings) -> list[HeadroomJson]:
    """Return how many copies each queue may have."""
    return [{"path": room.path, **named(room.member, settings), **_copies(room.copies)} for room in rooms]


def _copies(copies: Copies) -> HeadroomJson:
    return {"fits": copies.least, "at_most": copies.most, "complete": copies.is_exact}


def _model(model: HostModel, providers: Mapping[int, Named]) -> HeadroomJson:
    return {"like": _named(model.like, providers), "trees": model.trees, **_copies(model.each)}


def _named(root: int, providers: Mapping[int, Named]) -> HeadroomJson:
    """Name a tree; one that was only assumed to exist has no uuid."""
    named = providers.get(root)
    return {"uuid": named.uuid if named else None, "name": named.name if named else "one more"}


def message_of(room: Headroom) -> str:
    """Say in one sentence what trees without room lack.

    >>> message_of(Headroom(Copies(0, 0), 0, {("VCPU",): 2, ("MEMORY_MB", "VCPU"): 1}, {}, ()))
    'Of 3 trees without room 2 lack VCPU, 1 MEMORY_MB and VCPU.'
    >>> message_of(Headroom(Copies(0, 0), 0, {(): 1, ("VCPU",): 1}, {}, ()))
    'Of 2 trees without room 1 lacks VCPU, 1 has what is asked for, but not where it could be used together.'
    """
    if not room.lacking:
        return (
            "Every tree that can serve it has room."
            if room.with_room
            else "No tree can serve it, even if it were empty."
        )
    told = [f"{trees} {_all_of(names)}" for names, trees in room.lacking.items() if names]
    if told:
        number, _space, names = told[0].partition(" ")
        told[0] = f"{number} {'lacks' if number == '1' else 'lack'} {names}"
    apart = room.lacking.get((), 0)
    if apart:
        has = "has" if apart == 1 else "have"
        told.append(f"{apart} {has} what is asked for, but not where it could be used together")
    trees = f"{room.without_room} tree{'' if room.without_room == 1 else 's'}"
    return f"Of {trees} without room {', '.join(told)}."


def _all_of(names: tuple[str, ...]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
