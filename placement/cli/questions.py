"""``placement explain`` and ``placement headroom``: why a request finds no candidates, and how many more copies fit."""

import sys
from collections.abc import Iterator, Sequence

import click

from placement.api.planner.explain_json import telling_steps
from placement.api.versions import MAXIMUM
from placement.cli.configuration import chosen_settings, configured
from placement.cli.http_client import answered, answering, chosen_url, server_options
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
from placement.domain.quantities import amounts_in_words
from placement.errors import Invalid
from placement.formats.pasting import pasted
from placement.ui.filters import facts, in_units

EXPLAIN_PATH = "/planner/v1/explain"

EVEN_EMPTY = "no_single_provider"
"""The hint that comes before the cause: no change of usage would help."""


@click.command()
@click.argument("query")
@server_options
@listed
@click.option("--microversion", default=str(MAXIMUM), show_default=True, help="The microversion of the query.")
@configured
@click.pass_context
def explain(context: click.Context, query: str, *, microversion: str) -> None:
    """Explain why there are no allocation candidates.

    QUERY is a query string of GET /allocation_candidates, a line of a log or a shell that contains one, the name of a
    flavor in planner.yaml, or what "openstack flavor show" prints; - reads it from standard input:

      placement explain "resources=VCPU:8&required=HW_CPU_X86_AVX2"
      openstack flavor show g1.h100x2 | placement explain -

    The exit status is 3 if there are no candidates.

    The database may also belong to a running openstack-placement; it is only read.
    """
    text = query_string(query)
    with answering(microversion=microversion) as call:
        document = call("GET", f"{EXPLAIN_PATH}?{text}")
    show(explanation_report(document))
    context.exit(NOTHING_FITS if document["cause"] else 0)


def query_string(text: str) -> str:
    """Return the query string in an argument, which may be whatever the console takes; - is standard input.

    Raises:
        UsageError: it contains none.
    """
    planner = chosen_settings().planner
    try:
        return pasted(sys.stdin.read() if text == "-" else text, planner.flavors, planner.flavor_root_required)
    except Invalid as wrong:
        raise click.UsageError(wrong.message) from wrong


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
            rows = [
                (whole(provider["name"]), [f"{key} {fact.striptags()}" for key, fact in facts(provider, value)])
                for provider in near_miss["providers"]
            ]
            blocks.append(PrintedTable(("for example", "why"), rows))
    for hint in [hint for hint in document["hints"] if hint["hint"] != EVEN_EMPTY]:
        blocks += ["", f"Hint: {_sentence(hint)}"]
        if "provider" in hint:
            host, other_host = (printable(hint[key]["name"]) for key in ("provider", "found_on"))
            blocks.append(f"{other_host} has it, not {host}; trees like this: {hint['trees']:,}")
    return Report(document, blocks)


def _sentence(statement: Document) -> str:
    """Return a message with its amounts in the units of the console."""
    return in_units(statement["message"], statement.get("value", "")).striptags()


def _waterfall(document: Document) -> Iterator[Sequence[object]]:
    """Yield a headline for each demand, followed by a row for each condition."""
    for demand in document["demands"]:
        amounts = ", ".join(f"{name}:{amount}" for name, amount in demand["resources"].items()) or "no resources"
        groups = ", ".join(demand["groups"])
        yield f"{amounts} (group {groups})" if groups else amounts, "", "", ""
        yield from _steps(demand["steps"])
    if document["trees"]:
        yield "all together", "", "", ""
        yield from _steps(document["trees"])


def _steps(steps: Sequence[Document]) -> Iterator[Sequence[object]]:
    most_trees = max(step["trees"] for step in steps) or 1
    for step in telling_steps(steps):
        text = in_units(step["text"], step.get("value", "")).striptags()
        yield f"  {text}", step.get("providers", ""), step["trees"], Bar(step["trees"] / most_trees)


HEADROOM_PATH = "/planner/v1/headroom"


@click.command()
@click.argument("query", required=False)
@click.option("--flavors", is_flag=True, help="Count the flavors in planner.yaml.")
@answered
@click.pass_context
def headroom(context: click.Context, query: str | None, *, flavors: bool) -> None:
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
    request = None if query is None else query_string(query)
    if request is None and chosen_url() is None and not chosen_settings().planner.flavors:
        raise click.ClickException("planner.yaml has no flavors; 'placement flavors import' makes the section.")
    with answering() as call:
        document = call("POST", HEADROOM_PATH, {}) if request is None else call("GET", f"{HEADROOM_PATH}?{request}")
    show(flavors_report(document) if request is None else request_report(document))
    requests = document["headroom"].values() if request is None else [document]
    context.exit(0 if all(counted_request["at_most"] for counted_request in requests) else NOTHING_FITS)


def flavors_report(document: Document) -> Report:
    """Return what is printed of several requests: a row for each, with a bar for the trees that have room."""
    rows = [_flavor_row(name, counted) for name, counted in document["headroom"].items()]
    reasons = [
        f"{printable(name)}: {counted['message']}"
        for name, counted in document["headroom"].items()
        if not counted["at_most"]
    ]
    legend = "room: trees with room, of those that could serve the flavor. Each flavor is counted on its own."
    table = PrintedTable(("flavor", "fits", "room", "trees", "", "lacking"), rows)
    return Report(document, [table, "", *reasons, legend])


def _flavor_row(name: str, counted: Document) -> Sequence[object]:
    with_room, trees = counted["trees_with_room"], counted["trees_with_room"] + counted["trees_without_room"]
    lacking = [f"{_names(entry['resource_classes'])} ({entry['trees']:,})" for entry in counted["lacking"]]
    return whole(name), _copies(counted), with_room, trees, Bar(with_room / trees if trees else 0), lacking


def request_report(document: Document) -> Report:
    """Return what is printed of one request: the number of copies, where they fit, and what prevents more."""
    blocks: list[str | PrintedTable] = [f"{_copies(document).text} more fit.", document["message"]]
    if document["stranded"]:
        blocks.append(f"Free where none fits: {', '.join(amounts_in_words(document['stranded']))}.")
    if trees := document["trees"]:
        most_copies = max([tree["fits"] for tree in trees]) or 1
        rows = [(whole(tree["name"]), _copies(tree), Bar(tree["fits"] / most_copies)) for tree in trees]
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
