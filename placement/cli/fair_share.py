"""``placement fair-share``: the tree of fair shares, with bars."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from placement.api.planner.fair_share_json import tree_json
from placement.cli.configuration import configured, readable, settings_of
from placement.cli.http_client import Client, server_options
from placement.cli.output import Document, available_width, printable, table
from placement.services.fair_share.shares import all_shares
from placement.services.fair_share.usage_cache import UsageCache

PATH = "/planner/v1/fair-share"


BAR = 20

WHOLE = 1000
"""From here on, fractions of a unit are not shown."""


@click.command()
@server_options()
@configured
@click.pass_context
def fair_share(context: click.Context, *, url: str | None, token: str, as_json: bool) -> None:
    """Show how resources are shared among projects, compared with their shares in planner.yaml.

    With --url, ask a server; otherwise read the configured database, which may also belong to a running
    openstack-placement, with the tree in this machine's planner.yaml.
    """
    document = Client(url, token=token)("GET", PATH) if url is not None else _read(context)
    lines = [json.dumps(document, indent=2)] if as_json else tree_text(document, width=available_width())
    for line in lines:
        click.echo(line)


def _read(context: click.Context) -> Any:
    settings = settings_of(context)
    fair = settings.planner.fair_share
    with readable(settings) as database:
        return tree_json(all_shares(database, UsageCache(fair)), fair)


def tree_text(document: Document, *, width: int | None = None) -> Iterator[str]:
    """Yield the lines for a tree's JSON document."""
    of = f" in the aggregate {document['partition']}" if document["partition"] else ""
    totals = [f"{name} {document['free'][name]} of {document['totals'][name]}" for name in document["classes"]]
    yield f"Free{of}: {', '.join(totals)}."
    yield ""
    header = ("queue", "weight", "holds", "", "of", "amount", "entitled", "over", "would give", "share / weight", "")
    yield from table(header, [_row(node, document) for node in document["nodes"]], width=width)
    yield ""
    yield "At every level, the smallest share / weight is served next; a blocked queue waits for something exhausted."
    yield "A queue that is over its entitlement would give the amount shown to siblings that reclaim theirs."


def _row(node: Document, document: Document) -> Sequence[str]:
    depth = node["path"].count("/")
    name = node.get("project_id", node.get("consumer_type", node["path"].rpartition("/")[2]))
    of = _class_held_most(node["usage"], document["totals"])
    return (
        "  " * depth + printable(name),
        f"{node['weight']:>6.4g}" if depth else "",
        f"{node['held']:>5.0%}",
        _bar(node["held"]),
        of,
        *([f"{node['usage'][of]:>6}", f"{_number(node['entitled'][of]):>8}"] if of else ["", ""]),
        _over(node),
        ", ".join([f"{amount} {name}" for name, amount in node["gives"].items()]) if depth else "",
        f"{node['weighted_share']:>6.4g} {node['dominant'] or ''}".rstrip() if depth else "",
        "blocked" if node["blocked"] else "",
    )


def _over(node: Document) -> str:
    """Return by how much a node is above or below its entitlement, by class; empty if it is exactly met."""
    differences = node["over"] | {name: -amount for name, amount in node["under"].items()}
    return ", ".join(
        [f"{'+' if amount > 0 else ''}{_number(amount)} {name}" for name, amount in sorted(differences.items())]
    )


def _number(amount: float) -> str:
    """Return an amount with four digits or, if it is larger, in whole units."""
    return f"{amount:.0f}" if abs(amount) >= WHOLE else f"{amount:.4g}"


def _bar(held: float) -> str:
    """Return a bar: anything above 0 is visible, however small, and anything above 1 fills it."""
    filled = min(BAR, int(-(-held * BAR // 1)))
    return "#" * filled + "." * (BAR - filled)


def _class_held_most(usage: Mapping[str, int], totals: Mapping[str, int]) -> str:
    """Return the class of which the largest fraction is held."""
    parts = {name: amount / totals[name] if totals[name] else float("inf") for name, amount in usage.items() if amount}
    return max(parts, key=lambda name: parts[name], default="")
