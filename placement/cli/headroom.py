"""``placement headroom``: how many more copies of a request, or of each flavor in the planner file, fit."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import click

from placement.api.planner.headroom import headroom_of_flavors, headroom_of_query
from placement.api.query import Query
from placement.cli.configuration import configured, readable, settings_of
from placement.cli.explain import query_string
from placement.cli.http_client import Client, server_options
from placement.cli.output import Document, available_width, printable, table

PATH = "/planner/v1/headroom"

BAR_WIDTH = 20


@click.command()
@click.argument("query", required=False)
@click.option("--flavors", is_flag=True, help="Count the flavors in planner.yaml.")
@server_options()
@configured
@click.pass_context
def headroom(
    context: click.Context, query: str | None, *, flavors: bool, url: str | None, token: str, as_json: bool
) -> None:
    """Count how many more copies of a request fit, one after the other, without moving anything.

    QUERY is a query string of GET /allocation_candidates:

      placement headroom "resources=VCPU:8,MEMORY_MB:16384"

    With --flavors, count the flavors in planner.yaml; with --url, in the server's. The database may also belong to a
    running openstack-placement; it is only read.
    """
    if (query is None) == (not flavors):
        raise click.UsageError("There must be either a query or --flavors.")
    asked = None if query is None else query_string(query)
    document = _read(context, asked) if url is None else _asked(Client(url, token=token), asked)
    text = flavors_text if asked is None else headroom_text
    for line in [json.dumps(document, indent=2)] if as_json else text(document, width=available_width()):
        click.echo(line)


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


def flavors_text(document: Document, *, width: int | None = None) -> Iterator[str]:
    """Yield the lines for several requests: a row for each, with a bar for the trees that have room."""
    header = ("flavor", "fits", "trees", "", "the others lack")
    yield from table(header, [_row(name, one) for name, one in document["headroom"].items()], width=width)
    yield ""
    yield "trees: those with room, of those that could serve the flavor. Each flavor is counted on its own."


def headroom_text(document: Document, *, width: int | None = None) -> Iterator[str]:
    """Yield the lines for one request: the number of copies, where they fit, and what prevents more."""
    yield f"{_copies(document)} more fit."
    yield document["message"]
    if document["stranded"]:
        amounts = ", ".join(f"{amount} {name}" for name, amount in document["stranded"].items())
        yield f"Free where none fits: {amounts}."
    most = max([tree["fits"] for tree in document["trees"]], default=0)
    if document["trees"]:
        yield ""
        rows = [(printable(tree["name"]), _copies(tree), _bar(tree["fits"], most)) for tree in document["trees"]]
        yield from table(("most room", "fits", ""), rows, width=width)
    if document["one_more"]:
        yield ""
        models = document["one_more"]
        rows = [(printable(model["like"]["name"]), f"{model['trees']:>4}", _copies(model)) for model in models]
        yield from table(("one more like", "trees", "buys"), rows, width=width)


def _row(name: str, one: Document) -> Sequence[str]:
    with_room, of = one["trees_with_room"], one["trees_with_room"] + one["trees_without_room"]
    lacking = [f"{_names(entry['resource_classes'])} ({entry['trees']})" for entry in one["lacking"]]
    return printable(name), _copies(one), f"{with_room}/{of}", _bar(with_room, of), ", ".join(lacking)


def _names(classes: Sequence[str]) -> str:
    return " and ".join(classes) or "it in one place"


def _copies(counted: Document) -> str:
    return str(counted["fits"]) if counted["complete"] else f"{counted['fits']} to {counted['at_most']}"


def _bar(part: int, of: int) -> str:
    """Return a bar; anything above 0 is visible, however small."""
    filled = -(-BAR_WIDTH * part // of) if of else 0
    return "#" * filled + "." * (BAR_WIDTH - filled)
