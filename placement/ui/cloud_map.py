"""The map: a cell for each host, grouped and shaded by usage, with how many more copies of a request fit.

The card of a host shows its tree in small, and what prevents one more copy there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.errors import status_of
from placement.api.planner.explain_json import explanation_json
from placement.errors import Forbidden, PlacementError
from placement.services.allocation_candidates import Explained
from placement.services.console.cloud_map import CloudMap, HostOnMap, host_on_map
from placement.services.console.cloud_map import cloud_map as read_map
from placement.store.console.providers import NamedHost
from placement.ui.map_address import (
    BEST,
    CONSUMERS,
    MapAddress,
    address_of,
    compared,
    look_back,
    question_of,
    requested,
)
from placement.ui.map_blocks import MAX_CELLS, UNGROUPED, Block, Blocks, Groups, rows_of
from placement.ui.page import Page, show
from placement.ui.tree import LIST_RULES

EXPLAIN = "placement:planner:explain"


@dataclass(frozen=True, slots=True)
class HostCard:
    """A host on a map: one more copy fits, or one condition is in the way, or ``message`` says what is.

    ``value`` is that of the condition, ``example`` a provider that fails it. Without a host, ``message`` says why.
    """

    host: HostOnMap | None
    has_room: bool = False
    in_the_way: str = ""
    value: str = ""
    example: Mapping[str, Any] | None = None
    message: str = ""


def host_card(call: Call, address: MapAddress) -> HostCard:
    """Return the card of the selected host, for the request in the query field."""
    settings = call.server.settings
    try:
        request = requested(call, address.query) if call.is_allowed(EXPLAIN) else None
        levels, locks = settings.planner.levels, settings.locks_for_all
        host = host_on_map(call.database, address.host, request, levels=levels, locks=locks)
    except PlacementError as error:
        return HostCard(None, message=error.message)
    return _judged(host, host.explained) if host.explained else HostCard(host)


def _judged(host: HostOnMap, explained: Explained) -> HostCard:
    explanation, document = explained.explanation, explanation_json(explained)
    if explanation.cause is None:
        return HostCard(host, has_room=True)
    if not explanation.near_misses:
        return HostCard(host, message=document["cause"]["message"])
    first = document["near_misses"][0]
    example = next(iter(first["providers"]), None)
    condition = explanation.near_misses[0].condition
    return HostCard(host, in_the_way=condition.in_words, value=condition.value, example=example)


MAX_ROWS = 200
"""How many groups the table lists."""


@dataclass(frozen=True, slots=True)
class DrawnMap:
    """One map of a page, with the profile whose order it shows, and how many hosts the other one places differently."""

    title: str
    blocks: Sequence[Block]
    moved: int = 0


def cloud_map(call: Call) -> Response:
    """Show the map described by the address; if that is invalid, show the error beside a plain map."""
    address, fault = address_of(call.request), None
    try:
        cloud = read_map(call.database, question_of(call, address))
    except Forbidden:
        raise
    except PlacementError as error:
        fault = error
        address = replace(address, query="", class_name="", at="", profiles=())
        cloud = read_map(call.database, question_of(call, address))
    return _page(call, address, cloud, fault)


def _page(call: Call, address: MapAddress, cloud: CloudMap, fault: PlacementError | None) -> Response:
    kinds = call.server.settings.planner.aggregates
    groups = Groups.made(kinds, cloud.members)
    listed = [host for host in cloud.hosts if host.id in cloud.stocks] if address.only else cloud.hosts
    hosts, opened = _opened(groups, listed, address.group)
    outermost = next(iter(kinds), "")
    is_folded = len(hosts) > MAX_CELLS and not opened and bool(outermost)
    first = (address.page - 1) * MAX_CELLS
    shown = hosts if is_folded else hosts[first : first + MAX_CELLS]
    plain = Blocks(cloud, groups)
    if is_folded:
        maps = [DrawnMap("", plain.folded(hosts, outermost))]
    else:
        maps = _unfolded(cloud, groups, shown, profiles=compared(call, address))
    return show(
        "map.html",
        status=int(status_of(fault)) if fault else 200,
        fault=fault.message if fault else "",
        address=address,
        typed=call.request.args.get("query", ""),
        found=cloud,
        figures=plain.figures(hosts),
        maps=maps,
        rows=[*rows_of(maps[0].blocks)][:MAX_ROWS],
        is_folded=is_folded,
        opened=opened,
        more=not is_folded and first + MAX_CELLS < len(hosts),
        first=first,
        domain=plain.domain,
        card=host_card(call, address) if address.host else None,
        flavors=call.server.settings.planner.flavors,
        profiles=call.server.settings.planner.profiles,
        best=BEST,
        sees_projects=call.is_allowed(CONSUMERS),
        past=look_back(cloud.since),
    )


def _opened(groups: Groups, hosts: Sequence[NamedHost], key: str) -> tuple[Sequence[NamedHost], str]:
    """Return the hosts of the named outermost group and a label for it; all hosts if there is no such group."""
    kind = next(iter(groups.kinds), "")
    by_name = groups.split(kind, hosts) if key and kind else {}
    name = "" if key == UNGROUPED else key
    if name not in by_name:
        return hosts, ""
    return by_name[name], f"{kind} {name}" if name else f"no {kind}"


def _unfolded(
    cloud: CloudMap, groups: Groups, hosts: Sequence[NamedHost], *, profiles: Sequence[str]
) -> list[DrawnMap]:
    """Return the map of some hosts, or one per compared profile."""
    kinds = list(groups.kinds)
    if not cloud.orders:
        return [DrawnMap("", Blocks(cloud, groups).unfolded(hosts, kinds))]
    places = [{root: place for place, root in enumerate(order, start=1)} for order in cloud.orders]
    moved = _moved(*places) if len(places) == 2 else frozenset[int]()
    return [
        DrawnMap(name, Blocks(cloud, groups, places=own, moved=marked).unfolded(hosts, kinds), len(marked))
        for name, own in zip(profiles, places, strict=True)
        for marked in [moved & own.keys()]
    ]


def _moved(own: Mapping[int, int], theirs: Mapping[int, int]) -> frozenset[int]:
    """Return the roots whose place differs between two orders, or that only one of them has."""
    return frozenset(root for root in own.keys() | theirs.keys() if own.get(root) != theirs.get(root))


def card(call: Call) -> Response:
    """Show what a map tells of one host, alone: what is shown where the pointer rests."""
    address = address_of(call.request)
    return show("map_card.html", card=host_card(call, address), address=address)


PAGES = (
    Page(path="/map", view=cloud_map, endpoint="map", title="Map", rules=LIST_RULES),
    Page(path="/map/host", view=card, endpoint="map_card", below="map", rules=LIST_RULES),
)
