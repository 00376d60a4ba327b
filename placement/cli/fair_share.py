"""``placement fair-share``: the tree of fair shares, a row for each queue and project."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import click

from placement.cli.configuration import chosen_settings
from placement.cli.http_client import answered, answering
from placement.cli.output import Bar, Document, PrintedCell, PrintedTable, Report, show
from placement.domain.quantities import amount_in_words, amounts_in_words, class_held_most, differences_in_words

PATH = "/planner/v1/fair-share"

HEADER = ("queue", "holds", "", "class", "amount", "entitled", "over", "gives", "weight", "share", "state", "id")

LEGEND = (
    "share: what a queue holds, divided by its weight; at every level, the smallest is served next.",
    "blocked: a queue waits for nothing, or for something exhausted.",
    "gives: what a queue over its entitlement would give to siblings that reclaim theirs.",
)


@click.command()
@answered
def fair_share() -> None:
    """Show how resources are shared among projects, compared with their shares in planner.yaml.

    With --url, ask a server; otherwise read the configured database, which may also belong to a running
    openstack-placement, with the tree in this machine's planner.yaml.
    """
    with answering() as call:
        document = call("GET", PATH)
    show(tree_report(document, chosen_settings().planner.names.projects))


def tree_report(document: Document, names: Mapping[str, str] = MappingProxyType({})) -> Report:
    """Return what is printed of a tree's JSON document; ``names`` are those of projects."""
    aggregate = f" in the aggregate {document['partition']}" if document["partition"] else ""
    free, totals = document["free"], document["totals"]
    sums = [
        f"{name} {amount_in_words(free[name], name)} of {amount_in_words(totals[name], name)}"
        for name in document["classes"]
    ]
    shown = len(HEADER) if names else -1
    rows = [_row(node, totals, names)[:shown] for node in document["nodes"]]
    tree = PrintedTable(HEADER[:shown], rows)
    return Report(document, [f"Free{aggregate}: {', '.join(sums)}.", "", tree, "", *LEGEND])


def _row(node: Document, totals: Mapping[str, int], names: Mapping[str, str]) -> Sequence[object]:
    depth = node["path"].count("/")
    id_ = node.get("project_id", "")
    name = names.get(id_, id_) or node.get("consumer_type") or node["path"].rpartition("/")[2]
    held_most = class_held_most(node["usage"], totals)
    share = f"{node['weighted_share']:.4g} {node['dominant'] or ''}".rstrip()
    differences = node["over"] | {name: -amount for name, amount in node["under"].items()}
    return (
        PrintedCell("  " * depth + name, node["path"]),
        PrintedCell(f"{node['held']:.0%}", node["held"]),
        Bar(node["held"]),
        held_most,
        *[_amount(node[key].get(held_most), held_most) for key in ("usage", "entitled")],
        differences_in_words(differences),
        amounts_in_words(node["gives"]) if depth else [],
        PrintedCell(f"{node['weight']:.4g}", node["weight"]) if depth else "",
        PrintedCell(share, node["weighted_share"]) if depth else "",
        "blocked" if node["blocked"] else "",
        id_ if id_ in names else "",
    )


def _amount(amount: float | None, class_name: str) -> object:
    return "" if amount is None else PrintedCell(amount_in_words(amount, class_name), amount)
