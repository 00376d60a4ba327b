"""``placement explain``: why GET /allocation_candidates finds nothing for a query string."""

import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

import click

from placement.api.planner.explain import explain_query
from placement.api.planner.explain_json import telling_steps
from placement.api.query import Query
from placement.api.versions import MAXIMUM, requested_version
from placement.cli.configuration import configured, readable, settings_of
from placement.cli.http_client import Client, server_options
from placement.cli.output import NOTHING_FITS, Bar, Document, PrintedTable, Report, listed, printable, show, whole
from placement.domain.pasting import pasted
from placement.ui.numbers import facts, in_units

PATH = "/planner/v1/explain"

EVEN_EMPTY = "no_single_provider"
"""The hint that comes before the cause: no change of usage would help."""


@click.command()
@click.argument("query")
@server_options
@listed
@click.option("--microversion", default=str(MAXIMUM), show_default=True, help="The microversion of the query.")
@configured
@click.pass_context
def explain(context: click.Context, query: str, *, url: str | None, token: str, microversion: str) -> None:
    """Explain why there are no allocation candidates.

    QUERY is a query string of GET /allocation_candidates, a line of a log or a shell that contains one, the name of a
    flavor in planner.yaml, or what "openstack flavor show" prints; - reads it from standard input:

      placement explain "resources=VCPU:8&required=HW_CPU_X86_AVX2"
      openstack flavor show g1.h100x2 | placement explain -

    The exit status is 3 if there are no candidates.

    The database may also belong to a running openstack-placement; it is only read.
    """
    text = query_string(context, query)
    if url is not None:
        document = Client(url, token=token, microversion=microversion)("GET", f"{PATH}?{text}")
    else:
        version = requested_version(f"placement {microversion}")
        settings = settings_of(context)
        with readable(settings) as database:
            document = explain_query(database, Query.parse(text.encode()), version, settings)
    show(explanation_report(document))
    context.exit(NOTHING_FITS if document["cause"] else 0)


def query_string(context: click.Context, text: str) -> str:
    """Return the query string in an argument, which may be whatever the console takes; - is standard input.

    Raises:
        UsageError: it contains none.
    """
    planner = settings_of(context).planner
    query = pasted(sys.stdin.read() if text == "-" else text, planner.flavors, planner.flavor_root_required)
    if "=" in query:
        return query
    similar = get_close_matches(query, planner.flavors, n=1)
    hint = f" Did you mean {similar[0]!r}?" if similar else ""
    raise click.UsageError(f"{query[:100]!r} is no query string, and no flavor in planner.yaml has this name.{hint}")


def explanation_report(document: Document) -> Report:
    """Return what is printed of an explanation's JSON document."""
    waterfall = PrintedTable(("condition", "providers", "trees", ""), list(_waterfall(document)))
    blocks: list[str | PrintedTable] = [waterfall, ""]
    blocks += [_sentence(hint) for hint in document["hints"] if hint["hint"] == EVEN_EMPTY]
    if document["cause"] is None:
        blocks.append(f"There are candidates in {document['trees_with_candidates']:,} trees.")
    else:
        blocks.append(f"Cause: {_sentence(document['cause'])}")
    if not document["complete"]:
        blocks.append("The search hit its budget: some numbers are too small.")
    if document["cause"] and document["complete"] and not document["near_misses"]:
        blocks.append("No condition stands alone in the way: at least two would have to change.")
    for near_miss in document["near_misses"]:
        blocks += ["", _sentence(near_miss)]
        if near_miss["providers"]:
            value = near_miss.get("value", "")
            rows = [(whole(provider["name"]), _failure(provider, value)) for provider in near_miss["providers"]]
            blocks.append(PrintedTable(("for example", "why"), rows))
    for hint in [hint for hint in document["hints"] if hint["hint"] != EVEN_EMPTY]:
        blocks += ["", f"Hint: {_sentence(hint)}"]
        if "provider" in hint:
            here, there = (printable(hint[key]["name"]) for key in ("provider", "found_on"))
            blocks.append(f"{there} has it, not {here}; trees like this: {hint['trees']:,}")
    return Report(document, blocks)


def _sentence(told: Document) -> str:
    """Return a message with its amounts in the units of the console."""
    return in_units(told["message"], told.get("value", "")).striptags()


def _waterfall(document: Document) -> Iterator[Sequence[object]]:
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


def _steps(steps: Sequence[Document]) -> Iterator[Sequence[object]]:
    most = max(step["trees"] for step in steps) or 1
    for step in telling_steps(steps):
        text = in_units(step["text"], step.get("value", "")).striptags()
        yield f"  {text}", step.get("providers", ""), step["trees"], Bar(step["trees"] / most)


def _failure(provider: Document, value: str) -> list[str]:
    return [f"{key} {told.striptags()}" for key, told in facts(provider, value)]
