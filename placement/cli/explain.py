"""``placement explain``: why GET /allocation_candidates finds nothing for a query string."""

import json
from urllib.parse import urlsplit

import click

from placement.api.planner.explain import explain_query
from placement.api.query import Query
from placement.api.versions import MAXIMUM, requested_version
from placement.cli.asking import server_options
from placement.cli.configuration import configured, readable, settings_of
from placement.cli.explain_text import explanation_text
from placement.cli.http_client import Client
from placement.cli.output import available_width

PATH = "/planner/v1/explain"


@click.command()
@click.argument("query")
@server_options()
@click.option("--microversion", default=str(MAXIMUM), show_default=True, help="The microversion of the query.")
@configured
@click.pass_context
def explain(
    context: click.Context, query: str, *, url: str | None, token: str, microversion: str, as_json: bool
) -> None:
    """Explain why there are no allocation candidates.

    QUERY is what a client sent to GET /allocation_candidates, with or without the part before the question mark:

      placement explain "resources=VCPU:8&required=HW_CPU_X86_AVX2"

    The database may also belong to a running openstack-placement; it is only read.
    """
    text = query_string(query)
    if url is not None:
        document = Client(url, token=token, microversion=microversion)("GET", f"{PATH}?{text}")
    else:
        version = requested_version(f"placement {microversion}")
        settings = settings_of(context)
        with readable(settings) as database:
            document = explain_query(database, Query.parse(text.encode()), version, settings)
    lines = [json.dumps(document, indent=2)] if as_json else explanation_text(document, width=available_width())
    for line in lines:
        click.echo(line)


def query_string(query: str) -> str:
    """Return the part after the question mark, if any: the query may be a URL copied from a log."""
    return urlsplit(query).query if "?" in query else query
