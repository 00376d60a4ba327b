"""``placement audit``: orphaned allocations, overcommitted providers, and rows that no server writes."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, TextIO

import click

from placement.cli.configuration import chosen_settings, readable
from placement.cli.http_client import answered, answering, chosen_url
from placement.cli.output import SOMETHING_FOUND, Document, PrintedCell, PrintedTable, Report, progress, show, whole
from placement.domain.quantities import amount_in_words, amounts_in_words
from placement.errors import NotFound
from placement.store.checks.audit import EMPTY_AGGREGATES, EMPTY_CONSUMERS, MAX_MINUTES, OLDER_THAN_MIN, plain_uuid
from placement.store.connection.database import Database
from placement.store.lifecycle.maintenance import exclusively

PATH = "/planner/v1/audit"


@click.command()
@click.option(
    "--known-consumers",
    type=click.File("r", encoding="utf-8", errors="replace"),
    help="File with the uuids of all consumers that exist, one per line; - is standard input.",
)
@click.option("--consumer-type", help="Consider only consumers of this type, for example INSTANCE.")
@click.option(
    "--older-than",
    "older_than_minutes",
    type=click.IntRange(0, MAX_MINUTES),
    default=OLDER_THAN_MIN,
    show_default=True,
    metavar="MINUTES",
    help="Ignore consumers younger than this, which the list may not have yet.",
)
@click.option(
    "--fix",
    is_flag=True,
    help="Ask, then delete orphaned allocations, consumers without allocations and unused aggregates.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@answered
@click.pass_context
def audit(
    context: click.Context,
    *,
    known_consumers: TextIO | None,
    consumer_type: str | None,
    older_than_minutes: int,
    fix: bool,
    yes: bool,
) -> None:
    """Find orphaned allocations, overcommitted providers and odd rows.

    Servers, migrations and reservations are consumers. Given the uuids of all that exist, from every service that
    claims, it shows the other consumers and what they hold; without a list, it skips this check. Odd rows are those
    that the schema allows but no server writes, such as inventories of a class that does not exist. Nothing is changed
    without --fix, which needs the database. The exit status is 3 if problems remain.
    """
    if fix and chosen_url() is not None:
        raise click.UsageError("--fix changes the configured database, not that of the server in --url.")
    if fix and not yes and known_consumers is not None and known_consumers.name == "<stdin>":
        raise click.UsageError("--fix asks on standard input, which is the list here: add --yes, or name a file.")
    consumers = None if known_consumers is None else _uuids(known_consumers)
    names = chosen_settings().planner.names.projects
    if chosen_url() is not None:
        optional = {"known_consumers": sorted(consumers or ()), "consumer_type": consumer_type}
        body = {"older_than_minutes": older_than_minutes} | {key: value for key, value in optional.items() if value}
        with answering() as call:
            document = call("POST", PATH, body)
        show(_report(document, names))
        context.exit(SOMETHING_FOUND if _has_problems(document) else 0)
    with readable(chosen_settings()) as database:
        age = timedelta(minutes=older_than_minutes)
        document = _audited(database, consumers, consumer_type=consumer_type, older_than=age)
        show(_report(document, names))
        if fix and _question(document) and (yes or click.confirm(_question(document), err=True)):
            _fix(database, document)
            document = {"overcommitted": document["overcommitted"], "odd_rows": document["odd_rows"]}
        context.exit(SOMETHING_FOUND if _has_problems(document) else 0)


def _audited(
    database: Database, consumers: frozenset[str] | None, *, consumer_type: str | None, older_than: timedelta
) -> Document:
    """Return what a server would answer."""
    # Large, and needless with --url.
    from placement.api.planner.bulk_read import audit_json  # noqa: PLC0415
    from placement.services.bulk_read import audit as findings_in  # noqa: PLC0415

    with progress() as tell:
        return audit_json(
            findings_in(database, consumers, consumer_type=consumer_type, older_than=older_than, tell=tell)
        )


def _uuids(lines: TextIO) -> frozenset[str]:
    """Return the uuids in a list. An empty list is refused, because it would make every consumer unknown."""
    uuids = frozenset(line.split("#")[0].strip() for line in lines) - {""}
    if not uuids:
        raise click.ClickException("The list of known consumers is empty; every consumer would count as unknown.")
    for uuid in uuids:
        if len(plain_uuid(uuid)) != 32 or not plain_uuid(uuid).isalnum():
            raise click.ClickException(f"The list of known consumers holds {uuid[:50]!r}, which is not a uuid.")
    return uuids


def _has_problems(document: Mapping[str, Any]) -> bool:
    """Tell whether anything was found."""
    return any(problems["total"] if isinstance(problems, dict) else problems for problems in document.values())


def _report(document: Document, names: Mapping[str, str]) -> Report:
    table = PrintedTable(("problem", "subject", "details"), [*_rows(document, names)])
    legend = ["", "What is overcommitted or odd needs a decision."] if document["overcommitted"] else []
    return Report(document, [table if table.rows else "Nothing was found.", *legend])


def _rows(document: Document, names: Mapping[str, str]) -> Iterator[tuple[object, ...]]:
    for consumer in document["unknown_consumers"]:
        project = consumer["project_id"]
        owner = f"{consumer['consumer_type']} of project {names.get(project, project)}"
        held = [
            f"{provider['name']}: {' + '.join(amounts_in_words(provider['resources']))}"
            for provider in consumer["allocations"].values()
        ]
        yield whole("unknown consumer"), consumer["consumer_uuid"], [owner, *held]
    for provider in document["overcommitted"]:
        used, capacity = (amount_in_words(provider[key], provider["resource_class"]) for key in ("used", "capacity"))
        name = PrintedCell(provider["name"] or provider["provider_uuid"], provider["provider_uuid"])
        yield whole("overcommitted provider"), name, [provider["resource_class"], f"{used} used of {capacity}"]
    for line in document["odd_rows"]:
        yield whole("odd rows"), "", line
    for key in ("consumers_without_allocations", "aggregates_without_members"):
        if document[key]["total"]:
            yield whole(key.replace("_", " ")), document[key]["total"], ["for example", *document[key]["examples"]]


def _question(document: Document) -> str:
    """Return the question to confirm before anything is deleted; empty if there is nothing to delete."""
    unknown = len(document["unknown_consumers"])
    consumers, aggregates = (
        document[key]["total"] for key in ("consumers_without_allocations", "aggregates_without_members")
    )
    if not (unknown or consumers or aggregates):
        return ""
    return (
        f"Delete the allocations of {unknown} consumers, {consumers} consumers without allocations and {aggregates} "
        "aggregates without members?"
    )


def _fix(database: Database, document: Document) -> None:
    """Delete what nothing needs. Allocations are deleted consumer by consumer, as the API would."""
    from placement.services.allocations import delete_allocations  # noqa: PLC0415 - large, and needless with --url

    for consumer in document["unknown_consumers"]:
        try:
            delete_allocations(database, consumer["consumer_uuid"])
        except NotFound:
            continue  # deleted in the meantime
        click.echo(f"Deleted the allocations of {consumer['consumer_uuid']}.", err=True)
    with exclusively(database.engine) as connection:
        EMPTY_CONSUMERS.deleted(connection)
        EMPTY_AGGREGATES.deleted(connection)
