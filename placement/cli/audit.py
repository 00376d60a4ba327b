"""``placement audit``: orphaned allocations, overcommitted providers, and rows that no server writes."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TextIO

import click

from placement.cli.configuration import configured, filled, settings_of
from placement.cli.output import Table, progress
from placement.errors import NotFound
from placement.services.allocations import delete_allocations
from placement.settings import with_own_database
from placement.store.checks import audit as store
from placement.store.checks.audit import OverFull, Ownerless
from placement.store.checks.dangling import Hits
from placement.store.checks.odd_rows import odd_rows
from placement.store.connection.database import Database
from placement.store.lifecycle.maintenance import exclusively, looking

MAX_MINUTES = 1000 * 366 * 24 * 60
"""A thousand years: the calendar of Python ends at some point."""


@click.command()
@click.option(
    "--known-consumers",
    type=click.File("r", encoding="utf-8", errors="replace"),
    help="File with the uuids of all consumers that exist, one per line; - is standard input.",
)
@click.option("--consumer-type", "kind", help="Consider only consumers of this type, for example INSTANCE.")
@click.option(
    "--older-than",
    type=click.IntRange(0, MAX_MINUTES),
    default=60,
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
@configured
@click.pass_context
def audit(
    context: click.Context, *, known_consumers: TextIO | None, kind: str | None, older_than: int, fix: bool, yes: bool
) -> None:
    """Find orphaned allocations, overcommitted providers and odd rows.

    Servers, migrations and reservations are consumers. Given the uuids of all that exist, from every service that
    claims, it shows the other consumers and what they hold; without a list, it skips this check. Odd rows are those
    that the schema allows but no server writes, such as inventories of a class that does not exist. Nothing is changed
    without --fix. The exit status is 1 if problems remain.
    """
    if fix and not yes and known_consumers is not None and known_consumers.name == "<stdin>":
        raise click.UsageError("--fix asks on standard input, which is the list here: add --yes, or name a file.")
    known = None if known_consumers is None else _uuids(known_consumers)
    with filled(with_own_database(settings_of(context))) as database:
        found = _audited(database, known, kind=kind, older_than=timedelta(minutes=older_than))
        for line in found.told():
            click.echo(line)
        if fix and found.can_be_fixed and (yes or click.confirm(found.question, err=True)):
            found.fix()
        context.exit(1 if found.is_anything_left else 0)


def _uuids(lines: TextIO) -> frozenset[str]:
    """Return the uuids in a list. An empty list is refused, because it would make every consumer unknown."""
    found = frozenset(line.split("#")[0].strip() for line in lines) - {""}
    if not found:
        raise click.ClickException("The list of known consumers is empty; every consumer would count as unknown.")
    for uuid in found:
        if len(store.plain_uuid(uuid)) != 32 or not store.plain_uuid(uuid).isalnum():
            raise click.ClickException(f"The list of known consumers holds {uuid[:50]!r}, which is not a uuid.")
    return found


def _audited(database: Database, known: frozenset[str] | None, *, kind: str | None, older_than: timedelta) -> "_Audit":
    """Look for everything that an audit finds."""
    with looking(database.engine) as connection, progress() as tell:
        tell("Looking for orphaned allocations", 0)
        ownerless = () if known is None else store.ownerless(connection, known, kind=kind, older_than=older_than)
        tell("Looking for overcommitted providers", 0.4)
        return _Audit(
            database,
            ownerless=ownerless,
            over_full=store.over_full(connection),
            odd=tuple(odd_rows(connection)),
            consumers=store.empty_consumers(connection),
            aggregates=store.empty_aggregates(connection),
        )


class _Audit:
    """The findings, and how to fix them.

    Args:
        database: the database.
        ownerless: the unknown consumers.
        over_full: the overcommitted providers.
        odd: lines about rows that no server writes.
        consumers: the consumers without allocations.
        aggregates: the aggregates without members.
    """

    def __init__(
        self,
        database: Database,
        *,
        ownerless: Sequence[Ownerless],
        over_full: Sequence[OverFull],
        odd: Sequence[str],
        consumers: Hits,
        aggregates: Hits,
    ) -> None:
        self._database = database
        self._ownerless = ownerless
        self._over_full = over_full
        self._odd = odd
        self._consumers = consumers
        self._aggregates = aggregates

    @property
    def can_be_fixed(self) -> bool:
        """Whether there is anything to delete."""
        return bool(self._ownerless or self._consumers.total or self._aggregates.total)

    @property
    def is_anything_left(self) -> bool:
        """Whether anything is still wrong."""
        return self.can_be_fixed or bool(self._over_full or self._odd)

    @property
    def question(self) -> str:
        """The question to confirm before anything is deleted."""
        return (
            f"Delete the allocations of {len(self._ownerless)} consumers, {self._consumers.total} consumers without "
            f"allocations and {self._aggregates.total} aggregates without members?"
        )

    def told(self) -> Iterator[str]:
        """Yield the findings, line by line."""
        if not self.is_anything_left:
            yield "Nothing was found."
        if self._ownerless:
            yield f"Unknown consumers: {len(self._ownerless)}"
            yield from Table(("consumer", "type", "project", "holds"), [_row(each) for each in self._ownerless]).lines()
        if self._over_full:
            yield f"Overcommitted providers: {len(self._over_full)} (needs a decision)"
            rows = [
                (each.provider, each.name, each.resource_class, each.used, each.capacity) for each in self._over_full
            ]
            yield from Table(("provider", "name", "class", "used", "capacity"), rows).lines()
        yield from self._odd
        yield from _hits("Consumers without allocations", self._consumers)
        yield from _hits("Aggregates without members", self._aggregates)

    def fix(self) -> None:
        """Delete what nothing needs. Allocations are deleted consumer by consumer, as the API would."""
        for consumer in self._ownerless:
            try:
                delete_allocations(self._database, consumer.uuid)
            except NotFound:
                continue  # deleted in the meantime
            click.echo(f"Deleted the allocations of {consumer.uuid}.")
        with exclusively(self._database.engine) as connection:
            store.delete_empty_consumers(connection)
            store.delete_empty_aggregates(connection)
        self._ownerless, self._consumers, self._aggregates = (), Hits(0), Hits(0)


def _row(consumer: Ownerless) -> tuple[str, str, str, str]:
    held = "; ".join(
        f"{provider}: {', '.join(f'{name} {used}' for name, used in amounts.items())}"
        for provider, amounts in consumer.held.items()
    )
    return consumer.uuid, consumer.kind, consumer.project, held


def _hits(what: str, hits: Hits) -> Iterator[str]:
    if hits.total:
        yield f"{what}: {hits.total}, for example {', '.join(hits.examples)}"
