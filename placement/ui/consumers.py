"""Consumers and projects: the list with its search, the pages of one of each, and the search for anything by name.

A project's page also says who would give back to it if it reclaimed its share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flask import Response, url_for

from placement.allocators.fair_share.state import NodeShare
from placement.api.call import Call
from placement.api.planner.fair_share import RULE
from placement.api.query import parse_resources
from placement.domain.names import UNTYPED
from placement.errors import Invalid, NotFound
from placement.services.console.hosts import known_as
from placement.services.console.searches import (
    ConsumerSearch,
    consumer_with_holdings,
    found_consumers,
    project_standing,
)
from placement.services.fair_share.giving_back import ReclaimOptions, claim_of, reclaim
from placement.services.fair_share.shares import Wish, all_shares
from placement.settings.planner.values import OwnerNames
from placement.store.console.consumers import ListedConsumer
from placement.ui.changes import shown_changes
from placement.ui.page import MAX_CSV_ROWS, Page, csv_file, paging_of, show, wants_csv
from placement.ui.security import allows
from placement.ui.tree import LIST_RULES, PROVIDER_RULES

MAX_SHOWN = 200


class GivingConsumer(NamedTuple):
    """A consumer that gives back what it holds of the classes that count, with its project."""

    uuid: str
    project: str
    held: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ReclaimAnswer:
    """The form's content and the result; ``feasible`` is None if nothing was asked or ``fault`` says what is wrong.

    It is ``complete`` if all choices were considered; as few consumers as possible give, ``count`` in all.
    """

    claim: str
    feasible: bool | None = None
    complete: bool = True
    given_back: Sequence[GivingConsumer] = ()
    count: int = 0
    fault: str = ""


def reclaimed(call: Call, project: str, lacking: Mapping[str, float]) -> ReclaimAnswer | None:
    """Return who would give back for the claim in the address; None if the caller may not ask.

    Reads nothing unless something is claimed: reading all holdings of a large cloud takes seconds.
    """
    if not call.is_allowed(f"{RULE}:reclaim"):
        return None
    claim = call.request.args.get("claim", "").strip()
    if not claim:
        return ReclaimAnswer(",".join([f"{name}:{int(amount)}" for name, amount in lacking.items() if amount >= 1]))
    settings = call.server.settings.planner.fair_share
    try:
        wish = Wish(project, parse_resources(claim))
        claimed = claim_of(call.database, settings, wish, wishes=(), options=ReclaimOptions({}))
    except Invalid as error:
        return ReclaimAnswer(claim, fault=error.message)
    answer = reclaim(call.database, claimed)
    held = answer.giving.given_back
    givers = [GivingConsumer(giver.name, answer.members[giver.leaf], giver.amounts) for giver in held[:MAX_SHOWN]]
    return ReclaimAnswer(claim, answer.giving.feasible, answer.giving.complete, givers, len(held))


CONSUMER_RULES = ("placement:allocations:list",)
FIELDS = ("uuid", "project", "type")
PROJECT_RULE = "placement:usages"
HOSTS_RULE = "placement:resource_providers:allocations:list"
MAX_GIVERS = 20
MAX_PROJECTS = 500
"""So many projects whose names contain what is searched for."""


def consumers(call: Call) -> Response:
    """Show the newest consumers, or those that match the search."""
    arguments = call.request.args
    sought = {name: arguments.get(name, "").strip() for name in FIELDS}
    sought["uuid"] = sought["uuid"] or arguments.get("q", "").strip()
    paging = paging_of(call.request)
    names, is_file = call.server.settings.planner.names, wants_csv(call.request)
    projects = tuple(names.projects_with(sought["project"], limit=MAX_PROJECTS)) if sought["project"] else ()
    search = ConsumerSearch(**sought, projects=projects)
    size = MAX_CSV_ROWS if is_file else paging.size
    page = found_consumers(call.database, search, first=paging.first, limit=size)
    if is_file:
        return csv_file("consumers", [_csv_row(row, page.held.get(row.uuid, {}), names) for row in page.part.rows])
    return show("consumers.html", found=page, sought=sought, types=[*page.types, UNTYPED], paging=paging)


def _csv_row(consumer: ListedConsumer, held: Mapping[str, int], names: OwnerNames) -> dict[str, object]:
    project, user = consumer.project_id, consumer.user_id
    return {
        "consumer": consumer.uuid,
        "project": names.projects.get(project, project),
        "project_id": project,
        "user": names.users.get(user, user),
        "user_id": user,
        "type": consumer.type or UNTYPED,
        "since": consumer.since,
        "changed": consumer.changed_at,
        **held,
    }


def consumer(call: Call, uuid: str) -> Response:
    """Show what one consumer holds, and what it took and gave back; the latter also of one that is gone."""
    paging = paging_of(call.request)
    holdings = consumer_with_holdings(call.database, uuid, first=paging.first, limit=paging.size)
    uuid = holdings.consumer.uuid if holdings else uuid.lower()
    changes = shown_changes(call, consumer=uuid)
    if not (holdings or changes):
        raise NotFound(f"No consumer with uuid {uuid} has allocations.")
    return show("consumer.html", uuid=uuid, found=holdings, changes=changes, paging=paging)


@dataclass(frozen=True, slots=True)
class ShareOfClass:
    """How much a project holds of a class that counts, the cloud's total, and what the project is entitled to."""

    name: str
    used: int
    total: int
    entitled: float

    @property
    def over(self) -> float:
        """How much the project holds beyond its entitlement; negative if less."""
        return self.used - self.entitled


@dataclass(frozen=True, slots=True)
class ShareStanding:
    """How a project's usage compares with its share: its leaf in the tree of queues, and its queue.

    ``gives`` is what it would give back to queues that lack theirs, ``givers`` who would give back to it; None, as
    ``reclaim``, if the caller may not see that.
    """

    node: NodeShare
    queue: NodeShare
    classes: Sequence[ShareOfClass]
    gives: Mapping[str, int]
    givers: Sequence[tuple[str, Mapping[str, int]]] | None
    reclaim: ReclaimAnswer | None


def project(call: Call) -> Response:
    """Show one project."""
    name = call.request.args.get("id", "")
    if not name:
        raise Invalid("The id of a project is missing: /ui/project?id=ID.")
    call.authorize(PROJECT_RULE, project_id=name)
    paging = paging_of(call.request)
    with_hosts = call.is_allowed(HOSTS_RULE)
    standing = project_standing(call.database, name, with_hosts=with_hosts, first=paging.first, limit=paging.size)
    return show(
        "project.html",
        name=name,
        called=call.server.settings.planner.names.projects.get(name, ""),
        found=standing,
        standing=_standing(call, name),
        with_hosts=with_hosts,
        paging=paging,
    )


def _standing(call: Call, project: str) -> ShareStanding | None:
    """Return how a project compares; None if leaves are not projects, or if the caller may not see shares."""
    settings = call.server.settings.planner.fair_share
    sees_all = call.is_allowed(f"{RULE}:show_all")
    if settings.leaves != "project" or not (sees_all or call.is_allowed(f"{RULE}:show", project_id=project)):
        return None
    shares = all_shares(call.database, call.server.usage_cache)
    path = settings.queues.path_of(project)
    nodes = {node.path: node for node in shares.nodes}
    if path not in nodes:
        return None
    node = nodes[path]
    entitled = shares.entitled[path]
    classes = [
        ShareOfClass(name, node.usage.get(name, 0), shares.totals[name], entitled[name]) for name in settings.classes
    ]
    lacking = shares.under(node)
    givers = [
        (shares.members[giver.path], gives)
        for giver in shares.nodes
        if giver.is_leaf
        and giver.path != path
        and (gives := {name: amount for name, amount in shares.gives(giver).items() if name in lacking})
    ]
    givers.sort(key=lambda giver: -max(giver[1].values()))
    return ShareStanding(
        node,
        nodes[path.rpartition("/")[0]],
        classes,
        shares.gives(node),
        givers[:MAX_GIVERS] if sees_all else None,
        reclaimed(call, project, lacking) if sees_all else None,
    )


SEARCH_RULES = ("placement:resource_providers:list", "placement:allocations:list")


def search(call: Call) -> Response:
    """Redirect to what is searched for; without a search text, show the form."""
    if not any(call.is_allowed(rule) for rule in SEARCH_RULES):
        call.authorize(SEARCH_RULES[0])
    text = call.request.args.get("q", "").strip()
    return Response(status=303, headers={"location": _best_match(call, text)}) if text else show("search.html")


def _best_match(call: Call, text: str) -> str:
    """Return the address of the best match that the caller may see."""
    bearers = known_as(call.database, text)
    named = call.server.settings.planner.names.project_id(text)
    project = bearers.project or (named if named != text else None)
    if bearers.provider and allows(call, PROVIDER_RULES):
        return url_for("ui.provider", uuid=bearers.provider)
    if bearers.consumer and allows(call, CONSUMER_RULES):
        return url_for("ui.consumer", uuid=bearers.consumer)
    if project and call.is_allowed(PROJECT_RULE, project_id=project):
        return url_for("ui.project", id=project)
    return url_for("ui.providers" if allows(call, LIST_RULES) else "ui.consumers", q=text)


PAGES = (
    Page(path="/consumers", view=consumers, endpoint="consumers", title="Consumers", rules=CONSUMER_RULES),
    Page(path="/consumers/<uuid>", view=consumer, endpoint="consumer", below="consumers", rules=CONSUMER_RULES),
    # As in the API, access to a project's usage depends on its id, so the view checks policy itself.
    Page(path="/project", view=project, endpoint="project", below="consumers", rules=(), any_of=(PROJECT_RULE,)),
    Page(path="/search", view=search, endpoint="search", rules=(), any_of=SEARCH_RULES),
)
