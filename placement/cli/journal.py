"""``placement journal``: who changed what and when, and removal of expired rows."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import click

from placement.api.planner.journal_json import entry_json
from placement.cli.cadf import write_cadf
from placement.cli.configuration import configured, settings_of, with_journal
from placement.cli.http_client import Client, server_options
from placement.cli.output import (
    GAP,
    Document,
    Interrupts,
    PlainErrors,
    PrintedTable,
    available_width,
    chosen_columns,
    chosen_format,
    csv_text,
    listed,
    noted_interrupts,
    printable,
    wrapped,
    yaml_text,
)
from placement.domain.names import canonical_uuid, is_uuid_like
from placement.errors import ConfigurationError
from placement.services.journal import newest, prune, read_feed, read_trail
from placement.store.connection.database import Database
from placement.store.journal.cursor import Cursor
from placement.store.journal.reading import Wanted
from placement.store.journal.watched import NAME_KINDS

PATH = "/planner/v1/journal"
LOOK_EVERY_S = 1.0
PORTION = 1000
COLUMNS = ("time", "kind", "action", "what", "consumer", "provider", "user", "route", "request")
NARROWING = ("consumer", "provider", "project", "user")


def _provider(_context: click.Context, _option: click.Parameter, uuid: str | None) -> str | None:
    """Check that a provider is given by its uuid, in any spelling: no entry would match its name."""
    if uuid is not None and not is_uuid_like(uuid):
        raise click.BadParameter(f"{uuid!r} is not a uuid.")
    return None if uuid is None else canonical_uuid(uuid)


@click.group(cls=PlainErrors, invoke_without_command=True)
@click.option("--consumer", help="Only entries about this consumer.")
@click.option("--provider", callback=_provider, help="Only entries about the provider with this uuid.")
@click.option("--project", help="Only entries about this project's consumers.")
@click.option("--user", help="Only changes made by this user.")
@click.option(
    "--limit", type=click.IntRange(1, PORTION), default=50, show_default=True, help="How many entries, the newest."
)
@click.option("--follow", is_flag=True, help="Keep printing new entries until interrupted.")
@server_options
@listed
@configured
@click.pass_context
def journal(
    context: click.Context,
    /,
    *,
    url: str | None,
    token: str,
    follow: bool,
    limit: int,
    **only: str | None,
) -> None:
    """Show who changed what and when, newest last; as JSON, a document per line."""
    if context.invoked_subcommand is not None:
        return
    wanted = {name: value for name in NARROWING if (value := only[name]) is not None}
    if url is not None:
        entries = ServerJournal(Client(url, token=token), wanted).entries(limit, follow=follow)
        _print(entries, until_interrupted=follow)
        return
    with with_journal(settings_of(context)) as database:
        if not database.keeps_journal:
            click.echo("Nothing is recorded: [journal] enabled is off, or its triggers are missing.", err=True)
        chosen = Wanted(wanted.get("consumer"), wanted.get("provider"), wanted.get("project"), wanted.get("user"))
        entries = DatabaseJournal(database, chosen).entries(limit, follow=follow)
        _print(entries, until_interrupted=follow)


def _print(entries: Iterator[Document], *, until_interrupted: bool) -> None:
    """Print entries as they come; as YAML, all of them are one list."""
    chosen, columns = chosen_format(), chosen_columns()
    with suppress(KeyboardInterrupt) if until_interrupted else nullcontext():
        if chosen == "csv":
            click.echo(csv_text(_as_table((), columns)), nl=False)
        for entry in entries:
            if chosen == "table" and not columns:
                text = "\n".join(wrapped(entry_text(entry), available_width(), indent="    "))
            elif chosen == "json":
                text = json.dumps(entry)
            elif chosen == "yaml":
                text = yaml_text([entry]).rstrip("\n")
            else:
                row = _as_table([entry], columns)
                text = GAP.join(map(str, row.rows[0])) if chosen == "table" else csv_text(row, with_header=False)[:-1]
            click.echo(text)


def _as_table(entries: Sequence[Document], columns: Sequence[str]) -> PrintedTable:
    table = PrintedTable(COLUMNS, [_row(entry) for entry in entries])
    return table.chosen(columns) if columns else table


def _row(entry: Document) -> tuple[str, ...]:
    named = ("consumer_uuid", "provider_uuid", "by_user_id", "route", "request_id")
    return (entry["time"], entry["kind"], entry["action"], _what(entry), *[str(entry.get(name, "")) for name in named])


@dataclass(frozen=True, slots=True)
class DatabaseJournal:
    """The journal read from the database."""

    database: Database
    wanted: Wanted

    def entries(self, limit: int, *, follow: bool) -> Iterator[Document]:
        """Yield the newest entries, oldest first; with ``follow`` also those that come, until Ctrl-C."""
        with noted_interrupts() if follow else nullcontext(Interrupts()) as interrupts:
            reached = newest(self.database) if follow else Cursor()
            for entry in reversed(read_trail(self.database, self.wanted, limit=limit)):
                yield entry_json(entry)
            while follow and not interrupts.has_come:
                found, reached = read_feed(self.database, reached, self.wanted, limit=PORTION)
                yield from map(entry_json, found)
                if not found:
                    interrupts.wait(LOOK_EVERY_S)


@dataclass(frozen=True, slots=True)
class ServerJournal:
    """The journal read from a server."""

    call: Client
    only: dict[str, str]

    def entries(self, limit: int, *, follow: bool) -> Iterator[Document]:
        """Yield the same."""
        cursor = self._answer(after="now")["cursor"] if follow else ""
        yield from reversed(self._answer(limit=str(limit))["entries"])
        while follow:
            answer = self._answer(limit=str(PORTION), after=cursor)
            cursor = answer["cursor"]
            yield from answer["entries"]
            if not answer["entries"]:
                time.sleep(LOOK_EVERY_S)

    def _answer(self, **further: str) -> Any:
        return self.call("GET", f"{PATH}?{urlencode(self.only | further)}")


@journal.command("prune")
@click.option("--keep-days", type=click.IntRange(min=0), help="Overrides [journal] keep_days; 0: all rows but one.")
@configured
@click.pass_context
def prune_journal(context: click.Context, *, keep_days: int | None) -> None:
    """Remove expired rows now, a thousand at a time. Servers do so themselves, more slowly."""
    settings = settings_of(context)
    days = keep_days if keep_days is not None else settings.journal.keep_days
    if keep_days is None and not days:
        raise ConfigurationError("[journal] keep_days is 0: everything is kept. Name the number with --keep-days.")
    with with_journal(settings) as database:
        removed = prune(database, keep_days=days)
    click.echo(f"{removed:,} rows were removed.")


journal.add_command(write_cadf)


def entry_text(entry: Document) -> str:
    """Return a row as one line: when, what, which provider or consumer, and who did it."""
    parts = [entry["time"], f"{entry['kind']} {entry['action']}", _what(entry)]
    parts += [
        f"{word} {entry[key]}" for word, key in (("of", "consumer_uuid"), ("on", "provider_uuid")) if key in entry
    ]
    if "request_id" in entry:
        by = entry.get("by_user_id", "nobody")
        parts.append(f"by {by}: {entry.get('route', '')} [{entry['request_id']}]")
    return printable(GAP.join(filter(None, parts)))


def _what(entry: Document) -> str:
    """Return what has changed: an amount, a name, both names of a class that was renamed, or a generation."""
    if entry["kind"] in NAME_KINDS:
        return " -> ".join(entry[side]["name"] for side in ("old", "new") if side in entry)
    if "resource_class" in entry:
        return f"{entry['resource_class']} {_amounts(entry)}"
    return entry.get("name") or (f"generation {entry['generation']}" if "generation" in entry else "")


def _amounts(entry: Document) -> str:
    """Return an amount with its sign, or both amounts of a change: "4", "-4", "4 -> 2"."""
    if entry["action"] == "changed":
        return f"{entry.get('old_amount')} -> {entry.get('new_amount')}"
    return f"-{entry['old_amount']}" if entry["action"] == "deleted" else str(entry.get("new_amount"))
