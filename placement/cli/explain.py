"""``placement explain``: why GET /allocation_candidates finds nothing for a query string."""

import json
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import click

from placement.api.planner.explain import explain_query
from placement.api.planner.explain_json import telling_steps
from placement.api.query import Query
from placement.api.versions import MAXIMUM, requested_version
from placement.cli.configuration import configured, readable, settings_of
from placement.cli.http_client import Client, server_options
from placement.cli.output import Document, available_width, printable, table

PATH = "/planner/v1/explain"

BAR_WIDTH = 24

NAMES = ("uuid", "name", "root_provider_uuid")
"""The keys that identify a provider; all others show how it fails."""


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


def explanation_text(document: Document, *, width: int | None = None) -> Iterator[str]:
    """Yield the lines for an explanation's JSON document."""
    rows = list(_waterfall(document))
    yield from table(("what is asked for", "providers", "trees", "left"), rows, width=width)
    yield ""
    if document["cause"] is None:
        yield f"There are candidates in {document['trees_with_candidates']} trees."
    else:
        yield f"Cause: {document['cause']['message']}"
    if not document["complete"]:
        yield "The search hit its budget: some numbers are too small."
    if document["cause"] and document["complete"] and not document["near_misses"]:
        yield "No condition stands alone in the way: at least two would have to change."
    yield from _near_misses(document["near_misses"], width)
    for hint in document["hints"]:
        yield ""
        yield f"Hint: {hint['message']}"
        if "provider" in hint:
            here, there = (printable(hint[key]["name"]) for key in ("provider", "found_on"))
            yield f"      {there} has it, not {here}; trees like this: {hint['trees']}"


def _waterfall(document: Document) -> Iterator[Sequence[str]]:
    """Yield a headline for each demand, followed by a row for each condition."""
    for demand in document["demands"]:
        yield _headline(demand), "", "", ""
        yield from _steps(demand["steps"])
    if document["trees"]:
        yield "all together", "", "", ""
        yield from _steps(document["trees"])


def _headline(demand: Document) -> str:
    amounts = ", ".join(f"{name}:{amount}" for name, amount in demand["resources"].items()) or "no resources"
    groups = ", ".join(demand["groups"])
    return f"{amounts} (group {groups})" if groups else amounts


def _steps(steps: Sequence[Document]) -> Iterator[Sequence[str]]:
    most = max(step["trees"] for step in steps)
    for step in telling_steps(steps):
        # Anything above 0 is visible, however small.
        filled = -(-BAR_WIDTH * step["trees"] // most) if most else 0
        yield f"  {step['text']}", f"{step.get('providers', ''):>9}", f"{step['trees']:>5}", "#" * filled


def _near_misses(near_misses: Sequence[Document], width: int | None) -> Iterator[str]:
    for near_miss in near_misses:
        yield ""
        yield near_miss["message"]
        rows = [(printable(provider["name"]), _failure(provider)) for provider in near_miss["providers"]]
        if rows:
            yield from (f"  {line}" for line in table(("for example", ""), rows, width=width and width - 2))


def _failure(provider: Document) -> str:
    shown = ((key.replace("_", " "), value) for key, value in provider.items() if key not in NAMES)
    return ", ".join(f"{key} {value}" for key, value in shown)
