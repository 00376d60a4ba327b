"""Providers: the list with its search, and the page of one in its tree, with its traits and commands to copy."""

import shlex
from collections.abc import Mapping, Sequence

from flask import Response

from placement.api.call import Call
from placement.api.planner.candidates import options_for
from placement.api.query import parse_member_of, parse_required, parse_resources
from placement.api.versions import MAXIMUM
from placement.domain.inventory import ProviderFilter
from placement.errors import Invalid
from placement.services.console.searches import FoundProviders, ProviderSearch, found_providers
from placement.services.console.tree import TreeConsumer, provider_in_tree
from placement.services.whole_trees import evacuation
from placement.store.console.providers import ConsoleProvider, ListOrder
from placement.store.console.stocks import ClassTotals
from placement.ui.changes import sees_journal, shown_changes, shown_past
from placement.ui.filters import one_scale, visible
from placement.ui.page import MAX_CSV_ROWS, Page, csv_file, paging_of, show, wants_csv

FIELDS = (
    *("q", "resources", "required", "member_of", "in_tree"),
    *("list", "kind", "group", "disabled", "full", "changed", "sort"),
)
WITHIN_H = {"hour": 1, "day": 24, "week": 168}
YES = {"yes": True, "no": False}
SIZE = 50
MAX_WORDS = 10
MAX_GROUPS = 500
"""Kinds with more groups than this are not offered by the form, but their names work in an address."""

_WHAT_PROVIDERS_HAVE = ("placement:resource_providers:inventories:list", "placement:resource_providers:usages")

LIST_RULES = ("placement:resource_providers:list", *_WHAT_PROVIDERS_HAVE)

PROVIDER_RULES = (
    "placement:resource_providers:show",
    *_WHAT_PROVIDERS_HAVE,
    "placement:resource_providers:traits:list",
    "placement:resource_providers:aggregates:list",
    "placement:resource_providers:allocations:list",
)

MAX_UNGROUPED = 8
"""Up to this many are shown without groups."""

TWO_WORDS = frozenset({"HW", "MISC"})
"""For these prefixes the second word belongs to the topic: HW_CPU, HW_GPU, HW_NUMA."""


def providers(call: Call) -> Response:
    """Show the trees, or the providers that match a search."""
    arguments = call.request.args
    sought = {name: arguments.get(name, "").strip() for name in FIELDS}
    paging = paging_of(call.request, size=SIZE)
    page: FoundProviders | None = None
    fault = ""
    try:
        size = MAX_CSV_ROWS if wants_csv(call.request) else paging.size
        page = found_providers(call.database, _search(call, sought), first=paging.first, limit=size)
        if wants_csv(call.request):
            return csv_file("providers", [_csv_row(row, page.stocks.get(row.id, ())) for row in page.part.rows])
    except Invalid as error:
        fault = error.message
    return show(
        "providers.html",
        status=400 if fault else 200,
        found=page,
        fault=fault,
        sought=sought,
        trees=_lists_trees(sought),
        paging=paging,
        groups=_groups(call),
        is_narrowed=any(sought[name] for name in FIELDS if name not in ("q", "sort")),
        scale=one_scale(page.stocks.values()) if page and sought["kind"] else {},
    )


def _csv_row(provider: ConsoleProvider, stocks: Sequence[ClassTotals]) -> dict[str, object]:
    amounts = {
        f"{stock.class_name} {key}": value
        for stock in stocks
        for key, value in (("used", stock.used), ("capacity", stock.capacity))
    }
    identity = {"provider": provider.name, "uuid": provider.uuid, "root": provider.root_name}
    return {**identity, "generation": provider.generation, "changed": provider.changed_at, **amounts}


def _lists_trees(sought: Mapping[str, str]) -> bool:
    """Tell whether to list trees: by default yes, unless the search is for something inside trees."""
    if sought["list"] in ("trees", "providers"):
        return sought["list"] == "trees"
    return not (sought["q"] or sought["required"] or sought["in_tree"])


def _groups(call: Call) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the kinds of named aggregates with few enough names to choose from."""
    kinds = call.server.settings.planner.aggregates
    return {kind: dict(names) for kind, names in kinds.items() if len(names) <= MAX_GROUPS}


def _aggregates_of(call: Call, group: str) -> tuple[str, ...]:
    """Return the aggregates of a group, named in addresses as ``zone:eu-west-1a``."""
    kind, _, name = group.partition(":")
    aggregates = call.server.settings.planner.aggregates.get(kind, {}).get(name)
    if aggregates is None:
        raise Invalid(f"group: planner.yaml names no aggregates {group}.")
    return tuple(aggregates)


def _search(call: Call, sought: Mapping[str, str]) -> ProviderSearch:
    """Return the search that the form describes; four of its fields use the API's query syntax."""
    resources, required_text, member_of_text = (sought[name] for name in ("resources", "required", "member_of"))
    required, forbidden = parse_required([required_text] if required_text else [], MAXIMUM)
    member_of, forbidden_aggregates = parse_member_of([member_of_text] if member_of_text else [], MAXIMUM)
    filter_ = ProviderFilter(
        resources=parse_resources(resources) if resources else {},
        required=tuple(required),
        forbidden=forbidden,
        member_of=tuple(member_of),
        forbidden_aggregates=forbidden_aggregates,
        in_tree=sought["in_tree"] or None,
    )
    order = sought["sort"] or ListOrder.NAME
    if order not in list(ListOrder):
        raise Invalid(f"sort must be one of {', '.join(ListOrder)}.")
    return ProviderSearch(
        words=tuple(sought["q"].split()[:MAX_WORDS]),
        filter=filter_,
        trees=_lists_trees(sought),
        kind=tuple(sorted({name for name in sought["kind"].split(",") if name})),
        disabled=YES.get(sought["disabled"]),
        full=YES.get(sought["full"]),
        groups=(_aggregates_of(call, sought["group"]),) if sought["group"] else (),
        changed_h=WITHIN_H.get(sought["changed"]),
        by_journal=sees_journal(call),
        order=ListOrder(order),
    )


def provider(call: Call, uuid: str) -> Response:
    """Show one provider in its tree."""
    paging = paging_of(call.request)
    levels = call.server.settings.planner.levels
    tree = provider_in_tree(call.database, uuid, levels=levels, first=paging.first, limit=paging.size)
    shown = tree.nodes.values() if tree.is_root else [tree.focus]
    changes = shown_changes(call, providers=[node.uuid for node in shown])
    past = shown_past(call, tree.focus.uuid)
    kinds = call.server.settings.planner.aggregates
    return show(
        "provider.html",
        found=tree,
        paging=paging,
        changes=changes,
        past=past,
        traits=grouped(tree.focus.traits),
        called={uuid: f"{kind} {name}" for kind in kinds for name, uuids in kinds[kind].items() for uuid in uuids},
    )


def maintenance(call: Call, uuid: str) -> Response:
    """Show which consumers must leave a provider's tree before maintenance of its host, and where they could go."""
    plan = evacuation(call.database, uuid, options_for(call, {}))
    moves = [line for consumer in plan.consumers for line in commands_for_consumer(consumer)]
    host = commands_for_host(plan.uuid, plan.name)
    return show("maintenance.html", found=plan, host_commands=host, consumer_commands=moves)


PAGES = (
    Page(path="/providers", view=providers, endpoint="providers", title="Providers", rules=LIST_RULES),
    Page(path="/providers/<uuid>", view=provider, endpoint="provider", below="providers", rules=PROVIDER_RULES),
    Page(
        path="/providers/<uuid>/maintenance",
        view=maintenance,
        endpoint="maintenance",
        below="providers",
        rules=(
            "placement:resource_providers:show",
            "placement:resource_providers:allocations:list",
            "placement:planner:trees:show",
        ),
    ),
)


def commands_for_host(uuid: str, name: str) -> list[str]:
    """Return commands that take a host out of service, and that show the same data as its page."""
    disable = f"openstack compute service set --disable --disable-reason maintenance {shlex.quote(name)} nova-compute"
    return [
        # Nova knows no host whose name has invisible characters, and such a name is unsafe to paste.
        *([disable] if visible(name) == name else []),
        f"placement host drain {uuid}",
        f"openstack resource provider show --allocations {uuid}",
        f"openstack resource provider inventory list {uuid}",
    ]


def commands_for_consumer(consumer: TreeConsumer) -> list[str]:
    """Return commands that move a consumer to its target, and that show what it holds."""
    name = consumer.target.tree.name if consumer.target else ""
    to = f" --host {shlex.quote(name)}" if name and visible(name) == name else ""
    move = [f"openstack server migrate --live-migration{to} {consumer.uuid}"]
    shown = f"openstack resource provider allocation show {consumer.uuid}"
    return [*(move if consumer.type in ("INSTANCE", None) else ()), shown]


def grouped(traits: Sequence[str]) -> dict[str, list[str]]:
    """Return traits grouped by the beginning of their names; a few of them form one unnamed group."""
    if len(traits) <= MAX_UNGROUPED:
        return {"": list(traits)} if traits else {}
    groups: dict[str, list[str]] = {}
    for name in traits:
        words = name.split("_")
        groups.setdefault("_".join(words[: 2 if words[0] in TWO_WORDS else 1]), []).append(name)
    return groups
