"""``placement headroom``: how many more copies of a request, or of each flavor in the planner file, fit."""

import json
from typing import Any

import click

from placement.api.planner.headroom import headroom_of_flavors, headroom_of_query
from placement.api.query import Query
from placement.cli.asking import server_options
from placement.cli.configuration import configured, readable, settings_of
from placement.cli.explain import query_string
from placement.cli.headroom_text import flavors_text, headroom_text
from placement.cli.http_client import Client
from placement.cli.output import available_width

PATH = "/planner/v1/headroom"


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
