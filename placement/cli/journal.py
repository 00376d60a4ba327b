"""``placement journal``: who changed what and when, and removal of expired rows."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

import click

from placement.api.planner.journal_feed import entry_json
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
    listed,
    noted_interrupts,
    printable,
    wrapped,
    yaml_text,
)
from placement.domain.names import canonical_uuid, is_uuid_like
from placement.domain.provider import ProviderFilter
from placement.errors import ConfigurationError
from placement.services.journal import newest, prune, read_feed, read_trail
from placement.services.providers import providers as providers_in
from placement.settings.planner.values import OwnerNames
from placement.store.connection.database import Database
from placement.store.journal.cursor import Cursor
from placement.store.journal.reading import Wanted
from placement.store.journal.watched import NAME_KINDS

PATH = "/planner/v1/journal"
LOOK_EVERY_S = 1.0
PORTION = 1000
COLUMNS = (
    *("time", "kind", "action", "what", "consumer", "provider", "user", "route", "request"),
    *("provider_uuid", "user_id"),
)
NARROWING = ("consumer", "provider", "project", "user")


class ProvidersByName:
    """The uuids and names of providers, each looked up once.

    Args:
        find: returns the (uuid, name) of the providers with a ``name`` or a ``uuid``.
    """

    def __init__(self, find: Callable[[str, str], Sequence[tuple[str, str]]]) -> None:
        self._find = find
        self.names: dict[str, str] = {}

    def uuid(self, text: str) -> str:
        """Return the uuid of the provider with a uuid, in any spelling, or a name.

        Raises:
            UsageError: there is none with this name.
        """
        if is_uuid_like(text):
            return canonical_uuid(text)
        for uuid, _name in self._find("name", text):
            return uuid
        raise click.UsageError(f"No resource provider is named {text!r}; name a deleted provider by its uuid.")

    def name(self, uuid: str) -> str:
        """Return the name of the provider with a uuid; the uuid itself if it was deleted."""
        if uuid not in self.names:
            self.names[uuid] = next((name for _uuid, name in self._find("uuid", uuid)), uuid)
        return self.names[uuid]


@click.group(cls=PlainErrors, invoke_without_command=True)
@click.option("--consumer", help="Only entries about this consumer.")
@click.option("--provider", help="Only entries about the provider with this name or uuid.")
@click.option("--project", help="Only entries about the consumers of this project, by id or name.")
@click.option("--user", help="Only changes made by this user, by id or name.")
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
    settings = settings_of(context)
    owners = settings.planner.names
    if url is not None:
        call = Client(url, token=token)
        providers = ProvidersByName(partial(_providers_of_server, call))
        entries = ServerJournal(call, _narrowed(only, owners, providers), providers).entries(limit, follow=follow)
        _print(entries, owners, providers, until_interrupted=follow)
        return
    with with_journal(settings) as database:
        if not database.keeps_journal:
            click.echo("Nothing is recorded: [journal] enabled is off, or its triggers are missing.", err=True)
        providers = ProvidersByName(partial(_providers_of_database, database))
        narrowed = _narrowed(only, owners, providers)
        consumer, provider, project, user = map(narrowed.get, NARROWING)
        chosen = Wanted(consumer, (provider,) if provider else (), project, user)
        entries = DatabaseJournal(database, chosen).entries(limit, follow=follow)
        _print(entries, owners, providers, until_interrupted=follow)


def _narrowed(only: Mapping[str, str | None], owners: OwnerNames, providers: ProvidersByName) -> dict[str, str]:
    """Return what to narrow the journal to, by ids."""
    ids = {"provider": providers.uuid, "project": owners.project_id, "user": owners.user_id}
    return {name: ids.get(name, str)(value) for name in NARROWING if (value := only[name]) is not None}


def _providers_of_server(call: Client, key: str, value: str) -> list[tuple[str, str]]:
    rows = call("GET", f"/resource_providers?{urlencode({key: value})}")["resource_providers"]
    return [(row["uuid"], row["name"]) for row in rows]


def _providers_of_database(database: Database, key: str, value: str) -> list[tuple[str, str]]:
    wanted = ProviderFilter(name=value) if key == "name" else ProviderFilter(uuid=value)
    return [(uuid, name or uuid) for uuid, name, *_ in providers_in(database, wanted).rows]


def _print(
    entries: Iterator[Document], owners: OwnerNames, providers: ProvidersByName, *, until_interrupted: bool
) -> None:
    """Print entries as they come; as YAML, all of them are one list."""
    chosen, columns = chosen_format(), chosen_columns()
    with suppress(KeyboardInterrupt) if until_interrupted else nullcontext():
        if chosen == "csv":
            click.echo(_chosen((), columns).csv(), nl=False)
        for entry in entries:
            if chosen == "table" and not columns:
                text = "\n".join(wrapped(entry_text(_row(entry, owners, providers)), available_width(), indent="    "))
            elif chosen == "json":
                text = json.dumps(entry)
            elif chosen == "yaml":
                text = yaml_text([entry]).rstrip("\n")
            else:
                row = _chosen([_row(entry, owners, providers)], columns)
                text = GAP.join(map(str, row.rows[0])) if chosen == "table" else row.csv(with_header=False)[:-1]
            click.echo(text)


def _chosen(rows: Sequence[Sequence[str]], columns: Sequence[str]) -> PrintedTable:
    table = PrintedTable(COLUMNS, rows)
    return table.chosen(columns) if columns else table


def _row(entry: Document, owners: OwnerNames, providers: ProvidersByName) -> tuple[str, ...]:
    provider, user = (entry.get(key, "") for key in ("provider_uuid", "by_user_id"))
    names = (providers.name(provider) if provider else "", owners.users.get(user, user))
    ids = [entry.get(key, "") for key in ("route", "request_id")]
    what = (entry["time"], entry["kind"], entry["action"], _what(entry), entry.get("consumer_uuid", ""))
    return (*what, *names, *ids, provider, user)


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
    providers: ProvidersByName

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
        """Return an answer, and keep the names of its providers; one that was deleted goes by its uuid."""
        document = self.call("GET", f"{PATH}?{urlencode(self.only | further | {'names': 'true'})}")
        uuids = {uuid: uuid for entry in document["entries"] if (uuid := entry.get("provider_uuid"))}
        self.providers.names.update(uuids | document.get("provider_names", {}))
        return document


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


def entry_text(row: Sequence[str]) -> str:
    """Return a row as one line: when, what, which provider or consumer, and who did it."""
    cells = dict(zip(COLUMNS, row, strict=True))
    parts = [cells["time"], f"{cells['kind']} {cells['action']}", cells["what"]]
    parts += [f"{word} {cells[name]}" for word, name in (("of", "consumer"), ("on", "provider")) if cells[name]]
    if cells["request"]:
        parts.append(f"by {cells['user'] or 'nobody'}: {cells['route']} [{cells['request']}]")
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
