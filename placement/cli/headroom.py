"""``placement headroom``: how many more copies of a request, or of each flavor in the planner file, fit."""

from collections.abc import Sequence
from typing import Any

import click

from placement.api.planner.headroom import headroom_of_flavors, headroom_of_query
from placement.api.query import Query
from placement.cli.configuration import configured, readable, settings_of
from placement.cli.explain import query_string
from placement.cli.http_client import Client, server_options
from placement.cli.output import (
    NOTHING_FITS,
    Bar,
    Document,
    PrintedCell,
    PrintedTable,
    Report,
    listed,
    printable,
    show,
    whole,
)
from placement.ui.shares import amounts_in_words

PATH = "/planner/v1/headroom"


@click.command()
@click.argument("query", required=False)
@click.option("--flavors", is_flag=True, help="Count the flavors in planner.yaml.")
@server_options
@listed
@configured
@click.pass_context
def headroom(context: click.Context, query: str | None, *, flavors: bool, url: str | None, token: str) -> None:
    """Count how many more copies of a request fit, one after the other, without moving anything.

    QUERY is a query string of GET /allocation_candidates, or what "placement explain" takes instead, such as the name
    of a flavor in planner.yaml:

      placement headroom "resources=VCPU:8,MEMORY_MB:16384"

    With --flavors, count the flavors in planner.yaml; with --url, in the server's. The database may also belong to a
    running openstack-placement; it is only read. The exit status is 3 if the request, or one of the flavors, does not
    fit even once.
    """
    if (query is None) == (not flavors):
        raise click.UsageError("There must be either a query or --flavors.")
    asked = None if query is None else query_string(context, query)
    document = _read(context, asked) if url is None else _asked(Client(url, token=token), asked)
    show(flavors_report(document) if asked is None else request_report(document))
    counted = document["headroom"].values() if asked is None else [document]
    context.exit(0 if all(each["at_most"] for each in counted) else NOTHING_FITS)


def _asked(call: Client, query: str | None) -> Any:
    return call("POST", PATH, {}) if query is None else call("GET", f"{PATH}?{query}")


def _read(context: click.Context, query: str | None) -> Any:
    settings = settings_of(context)
    with readable(settings) as database:
        if query is not None:
            return headroom_of_query(database, Query.parse(query.encode()), locks=settings.locks_for_all)
        if not settings.planner.flavors:
            raise click.ClickException("planner.yaml has no flavors; 'placement flavors import' makes the section.")
        return headroom_of_flavors(database, settings.planner.flavors, locks=settings.locks_for_all)


def flavors_report(document: Document) -> Report:
    """Return what is printed of several requests: a row for each, with a bar for the trees that have room."""
    rows = [_row(name, counted) for name, counted in document["headroom"].items()]
    reasons = [f"{printable(name)}: {of['message']}" for name, of in document["headroom"].items() if not of["at_most"]]
    legend = "room: trees with room, of those that could serve the flavor. Each flavor is counted on its own."
    table = PrintedTable(("flavor", "fits", "room", "trees", "", "lacking"), rows)
    return Report(document, [table, "", *reasons, legend])


def _row(name: str, counted: Document) -> Sequence[object]:
    with_room, trees = counted["trees_with_room"], counted["trees_with_room"] + counted["trees_without_room"]
    lacking = [f"{_names(entry['resource_classes'])} ({entry['trees']:,})" for entry in counted["lacking"]]
    return whole(name), _copies(counted), with_room, trees, Bar(with_room / trees if trees else 0), lacking


def request_report(document: Document) -> Report:
    """Return what is printed of one request: the number of copies, where they fit, and what prevents more."""
    blocks: list[str | PrintedTable] = [f"{_copies(document).text} more fit.", document["message"]]
    if document["stranded"]:
        blocks.append(f"Free where none fits: {', '.join(amounts_in_words(document['stranded']))}.")
    if trees := document["trees"]:
        most = max([tree["fits"] for tree in trees]) or 1
        rows = [(whole(tree["name"]), _copies(tree), Bar(tree["fits"] / most)) for tree in trees]
        blocks += ["", PrintedTable(("most room", "fits", ""), rows)]
    if models := document["one_more"]:
        bought = [(whole(model["like"]["name"]), model["trees"], _copies(model)) for model in models]
        blocks += ["", PrintedTable(("one more like", "trees", "buys"), bought)]
    return Report(document, blocks)


def _names(classes: Sequence[str]) -> str:
    return " and ".join(classes) or "it in one place"


def _copies(counted: Document) -> PrintedCell:
    """Return how many fit; where that is not known exactly, programs get the number that certainly fits."""
    text = f"{counted['fits']:,}" if counted["complete"] else f"{counted['fits']:,} to {counted['at_most']:,}"
    return PrintedCell(text, counted["fits"])
