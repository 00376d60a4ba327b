"""``placement host`` and ``placement aggregate``: whole hosts, by a server or by the configured database.

Whatever changes something is a dry run without ``--yes``.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from urllib.parse import quote, urlencode

import click

from placement.cli.configuration import chosen_settings
from placement.cli.http_client import Client, answered, answering
from placement.cli.output import Document, PlainErrors, PrintedCell, PrintedTable, Report, printable, watched, whole
from placement.cli.output import show as print_report
from placement.domain.names import canonical_uuid, is_uuid_like
from placement.domain.quantities import amount_in_words, amounts_in_words
from placement.errors import NotFound
from placement.settings import Settings

TREES = "/planner/v1/trees"
PROVIDERS = "/resource_providers"
NEEDS_YES = "Nothing was changed: add --yes to do it."


_yes = click.option("--yes", is_flag=True, help="Carry the command out; without --yes, only show what would happen.")


@click.group(cls=PlainErrors)
def host() -> None:
    """Show whole hosts, take them out of service and back, and remove them.

    NAME is the name or uuid of a host, or of any provider in its tree.
    """


@host.command("list")
@click.argument("text", default="")
@click.option("--disabled", is_flag=True, help="Only hosts that nova has disabled, or that are drained.")
@click.option("--limit", type=click.IntRange(1, 1000), default=1000, show_default=True, help="How many hosts.")
@answered
def list_hosts(*, text: str, disabled: bool, limit: int) -> None:
    """List the hosts whose name contains TEXT, with what they have in use."""
    query = {"limit": limit, **({"name": text} if text else {}), **({"disabled": "true"} if disabled else {})}
    with answering(writes=True) as call:
        document = call("GET", f"{TREES}?{urlencode(query)}")
    print_report(list_report(document))


@host.command()
@click.argument("name")
@answered
def show(name: str) -> None:
    """Show who holds what of a host, and since when."""
    with answering(writes=True) as call:
        document = call("GET", f"{TREES}/{uuid_of(call, name)}")
    print_report(consumers_report(document))


@host.command()
@click.argument("name")
@click.option("--reserve", is_flag=True, help="Reserve everything instead of setting nova's trait of disabled hosts.")
@_yes
@answered
def drain(*, name: str, reserve: bool, yes: bool) -> None:
    """Keep new consumers off a host, and list those that have to go, each with a target.

    The trait COMPUTE_STATUS_DISABLED keeps nova away; nova itself sets and removes it with its compute service.
    --reserve refuses every claim. "placement host enable" undoes either.
    """
    with answering(writes=True) as call:
        body = {"by": "reserve" if reserve else "trait", "dry_run": not yes}
        document = call("POST", f"{TREES}/{uuid_of(call, name)}/drain", body)
    print_report(drain_report(document))


@host.command()
@click.argument("name")
@_yes
@answered
def enable(*, name: str, yes: bool) -> None:
    """Undo a drain: remove the trait, and restore what was reserved before."""
    with answering(writes=True) as call:
        uuid = uuid_of(call, name)
        if yes:
            call("POST", f"{TREES}/{uuid}/enable")
        document = call("GET", f"{TREES}/{uuid}")
    print_report(consumers_report(document, "It takes consumers again." if yes else NEEDS_YES))


@host.command()
@click.argument("name")
@_yes
@answered
def remove(*, name: str, yes: bool) -> None:
    """Remove a dead host with everything in its tree, and with the allocations that are left on it.

    What the consumers hold on other hosts stays theirs. The host goes only if nobody else holds something by then.
    """
    with answering(writes=True) as call:
        document = call("GET", f"{TREES}/{uuid_of(call, name)}")
        if not document["complete"]:
            raise click.ClickException("Too many consumers for one removal: drain the host first.")
        if yes:
            consumers = ",".join(consumer["consumer_uuid"] for consumer in document["consumers"])
            call("DELETE", f"{TREES}/{document['uuid']}?{urlencode({'consumers': consumers})}")
    print_report(consumers_report(document, "The host was removed." if yes else NEEDS_YES))


@click.group(cls=PlainErrors)
def aggregate() -> None:
    """Move hosts between aggregates."""


@aggregate.command()
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--from", "source", required=True, metavar="AGGREGATE", help="The aggregate to leave.")
@click.option("--to", "target", required=True, metavar="AGGREGATE", help="The aggregate to join.")
@_yes
@answered
def move(*, names: Sequence[str], source: str, target: str, yes: bool) -> None:
    """Move hosts from one aggregate to another, as when a rack is rebuilt; without NAME, all that are in it.

    Each provider of their trees that is in the first one joins the second. An aggregate is a uuid or, as in
    planner.yaml, its kind and name: rack:b07.
    """
    settings = chosen_settings()
    leaves, joins = (_aggregate(settings, text) for text in (source, target))
    with answering(writes=True) as call:
        trees = [{"in_tree": uuid_of(call, name)} for name in names] or [{}]
        moved = [provider for tree in trees for provider in _members(call, leaves, tree)]
        if yes:
            with watched(moved, "Moving") as providers:
                for provider in providers:
                    _rejoin(call, provider["uuid"], leaves=leaves, joins=joins)
    rows = [(whole(provider["name"]), provider["uuid"]) for provider in moved]
    table = PrintedTable(("provider", "uuid"), rows) if rows else "None of them is in it."
    document = {"moved": moved, "dry_run": not yes}
    print_report(Report(document, [table, *([] if yes else [NEEDS_YES])]))


def _aggregate(settings: Settings, text: str) -> str:
    """Return the uuid of an aggregate that is given by its uuid, or by its kind and name."""
    if is_uuid_like(text):
        return canonical_uuid(text)
    kind, _, name = text.partition(":")
    uuids = settings.planner.aggregates.get(kind, {}).get(name, ())
    if len(uuids) != 1:
        raise NotFound(f"planner.yaml names no aggregate {text}, or several; give the uuid.")
    return uuids[0]


def _members(call: Client, aggregate_uuid: str, tree: Document) -> list[Document]:
    query = urlencode({"member_of": aggregate_uuid, **tree})
    return [
        {"uuid": provider["uuid"], "name": provider["name"]}
        for provider in call("GET", f"{PROVIDERS}?{query}")["resource_providers"]
    ]


def _rejoin(call: Client, uuid: str, *, leaves: str, joins: str) -> None:
    path = f"{PROVIDERS}/{uuid}/aggregates"
    before = call("GET", path)
    after = dict.fromkeys([*(aggregate for aggregate in before["aggregates"] if aggregate != leaves), joins])
    generation = before["resource_provider_generation"]
    call("PUT", path, {"aggregates": [*after], "resource_provider_generation": generation})


def uuid_of(call: Client, name: str) -> str:
    """Return the root of the tree of the provider with this name or uuid.

    Raises:
        NotFound: there is none.
    """
    key = "uuid" if is_uuid_like(name) else "name"
    value = canonical_uuid(name) if key == "uuid" else name
    providers = call("GET", f"{PROVIDERS}?{key}={quote(value, safe='')}")["resource_providers"]
    if not providers:
        raise NotFound(f"There is no host {printable(name)}{_similar(call, name)}; 'placement host list' lists them.")
    return str(providers[0]["root_provider_uuid"])


def _similar(call: Client, name: str) -> str:
    names = [tree["name"] for tree in call("GET", f"{TREES}?limit=1000")["trees"]]
    similar = [other for other in names if other.startswith(f"{name}.")] or get_close_matches(name, names, n=1)
    return f". Did you mean {printable(similar[0])}?" if similar else ""


def list_report(document: Document) -> Report:
    """Return what is printed of a list of hosts."""
    rows = [
        (whole(tree["name"]), "disabled" if tree["disabled"] else "", _in_use(tree["resources"]), tree["providers"])
        for tree in document["trees"]
    ]
    more = [] if document["complete"] else ["There are more hosts than these: narrow the name."]
    return Report(document, [PrintedTable(("host", "state", "in use", "providers"), rows), *more])


def _in_use(stocks: Mapping[str, Document]) -> PrintedCell:
    amounts = [(name, stock["used"], stock["capacity"]) for name, stock in stocks.items()]
    texts = [
        f"{name} {amount_in_words(used, name)}/{amount_in_words(capacity, name)}" for name, used, capacity in amounts
    ]
    return PrintedCell(texts, ", ".join([f"{name} {used}/{capacity}" for name, used, capacity in amounts]))


def consumers_report(document: Document, *further: str) -> Report:
    """Return what is printed of a host's consumers."""
    table = _consumers(document, ("consumer", "holds", "since (UTC)", "type", "project"))
    return _report(document, [table if table.rows else "Nobody holds anything of it.", *further])


def drain_report(document: Document) -> Report:
    """Return what is printed of the consumers that have to leave a host."""
    table = _consumers(document, ("consumer", "target", "holds", "type", "project"))
    done = NEEDS_YES if document["dry_run"] else "Nobody new is sent there."
    return _report(document, [table if table.rows else "Nobody has to leave.", done])


def _consumers(document: Document, columns: Sequence[str]) -> PrintedTable:
    names = chosen_settings().planner.names.projects
    cells = [
        {
            "consumer": whole(consumer["consumer_uuid"]),
            "target": whole(consumer["target"]["name"] if consumer.get("target") else "nowhere"),
            "holds": PrintedCell(
                amounts_in_words(consumer["resources"]),
                ", ".join([f"{amount} {name}" for name, amount in consumer["resources"].items()]),
            ),
            "since (UTC)": (consumer.get("since") or "")[:16],
            "type": consumer["consumer_type"] or "unknown",
            "project": PrintedCell(names.get(consumer["project_id"], consumer["project_id"]), consumer["project_id"]),
        }
        for consumer in document["consumers"]
    ]
    return PrintedTable(columns, [[row[name] for name in columns] for row in cells])


def _report(document: Document, blocks: Sequence[str | PrintedTable]) -> Report:
    state = ", disabled" if document["disabled"] else ""
    title = f"{printable(document['name'])} ({document['uuid']}){state}"
    unsure = "There may be more consumers, or more places: not everything was looked at."
    return Report(document, [title, *blocks, *([] if document["complete"] else [unsure])])
