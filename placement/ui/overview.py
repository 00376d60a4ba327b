"""The overview: what the cloud has and how much of it is in use."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from flask import Response, url_for

from placement.allocators.bundle_packing import Copies
from placement.api.call import Call
from placement.api.planner.headroom import message_of, requests_of_flavors
from placement.candidates.headroom.totals import Headroom
from placement.errors import Invalid
from placement.services.console import hosts as service
from placement.services.console.hosts import AT_LEAST
from placement.services.fair_share.shares import all_shares
from placement.services.planner.request_rooms import Listing, headrooms
from placement.ui.changes import shown_changes
from placement.ui.filters import one_scale, visible
from placement.ui.page import Page, show
from placement.ui.tree import LIST_RULES

MAX_FLAVORS = 50
HEADROOM = "placement:planner:headroom"
SHARES = "placement:planner:fair_share:show_all"
FEW_COPIES = 3
MAX_QUEUES = 5
MAX_CHANGES = 6

DROPS_SHOWN_FOR = timedelta(days=1)
DROPS = {
    "difference": "Cached trees differed from the tables",
    "triggers": "The journal's triggers were missing, so it lacks changes,",
}
"""Why everything that was cached was dropped."""


@dataclass(frozen=True, slots=True)
class FlavorRoom:
    """How many more copies of a flavor fit, where, and why no more do."""

    name: str
    query: str
    copies: Copies
    headroom: Headroom
    message: str


class Notice(NamedTuple):
    """Something that needs attention, the address where to look at it, what to do, and the page of how-to about it."""

    text: str
    link: str
    advice: str
    page: str


def overview(call: Call) -> Response:
    """Show the whole cloud on one page, what needs attention first."""
    flavors = _flavors(call)
    locks = call.server.settings.planner.exclusive.values()
    changes = shown_changes(call, limit=MAX_CHANGES)
    cloud = service.overview(call.database, locks=tuple(locks), with_changes=changes is None)
    return show(
        "overview.html",
        cloud=cloud,
        scales=[
            one_scale([cloud.tree_stocks[tree.id] for tree in (*kind.fullest, *kind.emptiest)]) for kind in cloud.kinds
        ],
        at_least=AT_LEAST,
        flavors=flavors,
        notices=[*_of_cloud(cloud.attention), *_of_flavors(flavors or ()), *_of_queues(call), *_of_database(call)],
        manual=call.server.settings.ui.manual.rstrip("/"),
        changes=changes,
    )


def _of_cloud(attention: service.Attention) -> Iterator[Notice]:
    """Yield what hosts themselves show."""
    for name, trees in attention.overcommitted.items():
        text = f"More {name} in use than capacity: {_hosts(trees)}."
        advice = "Move consumers away, or correct what the host reports; until then it takes nobody."
        yield Notice(text, url_for("ui.providers", sort="fullest", full="yes"), advice, "drain-a-host")
    if attention.disabled_with_room:
        text = f"Disabled, with free capacity: {_hosts(attention.disabled_with_room)}."
        advice = "Put them back to work with 'placement host enable NAME --yes', or remove them."
        yield Notice(text, url_for("ui.providers", disabled="yes", sort="emptiest"), advice, "drain-a-host")
    if attention.unchanged:
        text = f"Unchanged for {service.UNCHANGED_DAYS} days: {_hosts(attention.unchanged)}."
        advice = "Nobody may update them any more: check their agents, and 'placement host remove NAME' dead ones."
        yield Notice(text, url_for("ui.providers", sort="unchanged"), advice, "remove-a-dead-host")


def _hosts(number: int) -> str:
    return f"{number:,} host{'' if number == 1 else 's'}"


def _of_flavors(flavors: Sequence[FlavorRoom]) -> Iterator[Notice]:
    """Yield the flavors that soon fit nowhere, and the devices that are free where even the best of them do not fit."""
    for flavor in flavors:
        if flavor.copies.max_count < FEW_COPIES:
            text = f"{visible(flavor.name)} fits {flavor.copies.least} more times."
            advice = "The page says what is in the way."
            yield Notice(text, url_for("ui.request", query=flavor.query), advice, "explain-no-candidates")
    for name in sorted({name for flavor in flavors for name in flavor.headroom.stranded} - service.AMOUNTS):
        with_some = [flavor for flavor in flavors if name in flavor.headroom.stranded]
        flavor = min(with_some, key=lambda flavor: flavor.headroom.stranded[name])
        if amount := flavor.headroom.stranded[name]:
            text = f"{amount:,} {name} are free on hosts without room for {visible(flavor.name)}."
            advice = "Move away who takes up the rest of these hosts: their cells have a red corner."
            yield Notice(text, url_for("ui.map", query=flavor.name), advice, "find-stranded-capacity")


def _of_queues(call: Call) -> Iterator[Notice]:
    """Yield the queues that hold more than they are entitled to while others lack theirs."""
    if not (call.server.settings.planner.fair_share.queues.weights and call.is_allowed(SHARES)):
        return
    shares = all_shares(call.database, call.server.usage_cache)
    queues = [node for node in shares.nodes if not node.is_leaf and "/" in node.path]
    lacking = any(amount >= 1 for node in queues for amount in shares.under(node).values())
    for node in [node for node in queues if lacking and shares.gives(node)][:MAX_QUEUES]:
        text = f"{visible(node.path)} holds more than it is entitled to, and other queues less."
        advice = "A project's page names the consumers that would give back."
        yield Notice(text, url_for("ui.shares", at=node.path), advice, "give-a-tenant-a-share")


def _of_database(call: Call) -> Iterator[Notice]:
    """Yield what is wrong with the database, the journal and what is cached by it."""
    link, upgrade, database = url_for("ui.providers", sort="changed"), "Run 'placement db upgrade'.", call.database
    if not database.keeps_usage:
        text = "The triggers that keep usage are missing, so each request sums it."
        yield Notice(text, link, upgrade, "what-needs-attention")
    if call.server.settings.journal.enabled and not database.keeps_journal:
        yield Notice("The journal is not written, so nothing is cached.", link, upgrade, "what-needs-attention")
    if database.write_fault is not None:
        advice = "Mend the database: reads still work, claims do not."
        yield Notice(f"Writes fail: {database.write_fault}.", link, advice, "when-the-database-fails")
    for reason, time in database.dropped_at.items():
        if datetime.now(UTC) - time < DROPS_SHOWN_FOR:
            advice = "All that was cached was dropped. Find out who writes past the triggers; run 'placement db check'."
            yield Notice(f"{DROPS[reason]} at {time:%Y-%m-%d %H:%M} UTC.", link, advice, "what-needs-attention")
    for name, number in call.server.audit.problems.items():
        text, advice = f"{name}: {number:,}, as of the last hourly audit.", "'placement audit' names them."
        yield Notice(text, url_for("ui.consumers"), advice, "find-orphans")


def _flavors(call: Call) -> list[FlavorRoom] | None:
    """Return the room for the planner file's flavors; None if there are none or the caller may not see it."""
    flavors = dict(list(call.server.settings.planner.flavors.items())[:MAX_FLAVORS])
    if not flavors or not call.is_allowed(HEADROOM):
        return None
    try:
        requests, locks = requests_of_flavors(flavors), call.server.locks
        rooms = headrooms(call.database, requests, Listing(models=False), locks=locks)
    except Invalid:
        return []
    return [
        FlavorRoom(name, query, room.headroom.copies, room.headroom, message_of(room.headroom))
        for name, query in flavors.items()
        for room in [rooms.rooms[name]]
    ]


PAGES = (Page(path="/", view=overview, endpoint="overview", title="Overview", rules=LIST_RULES),)
