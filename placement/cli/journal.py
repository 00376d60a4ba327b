"""``placement journal``: who changed what and when, and removal of expired rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any
from urllib.parse import urlencode

import click

from placement.cli.cadf import write_cadf
from placement.cli.configuration import chosen_settings, configured, readable
from placement.cli.http_client import Client, answered, answering, chosen_url
from placement.cli.output import (
    GAP,
    Document,
    Interrupts,
    PlainErrors,
    PrintedTable,
    available_width,
    chosen_columns,
    chosen_format,
    noted_interrupts,
    printable,
    wrapped,
    yaml_text,
)
from placement.domain.names import canonical_uuid, is_uuid_like
from placement.errors import ConfigurationError
from placement.services.journal import prune
from placement.settings.planner.values import OwnerNames
from placement.store.journal.watched import NAME_KINDS

PATH = "/planner/v1/journal"
LOOK_EVERY_S = 1.0
PORTION = 1000
COLUMNS = (
    *("time", "kind", "action", "what", "consumer", "provider", "user", "route", "request"),
    *("provider_uuid", "user_id"),
)


@click.group(cls=PlainErrors, invoke_without_command=True)
@click.option("--consumer", help="Only entries about this consumer.")
@click.option("--provider", help="Only entries about the provider with this name or uuid.")
@click.option("--project", help="Only entries about the consumers of this project, by id or name.")
@click.option("--user", help="Only changes made by this user, by id or name.")
@click.option(
    "--limit", type=click.IntRange(1, PORTION), default=50, show_default=True, help="How many entries, the newest."
)
@click.option("--follow", is_flag=True, help="Keep printing new entries until interrupted.")
@answered
@click.pass_context
def journal(context: click.Context, /, *, follow: bool, limit: int, **only: str | None) -> None:
    """Show who changed what and when, newest last; as JSON, a document per line."""
    if context.invoked_subcommand is not None:
        return
    settings = chosen_settings()
    if chosen_url() is None:
        with readable(settings, with_journal=True) as database:
            if not (database.keeps_journal and settings.journal.enabled):
                click.echo("Nothing is recorded: [journal] enabled is off, or its triggers are missing.", err=True)
                return
    with answering() as call:
        journal_of = JournalReader(call, settings.planner.names, only)
        _print(journal_of, limit, follow=follow)


class JournalReader:
    """Reads the journal of a server, with names for the ids in it, ``only`` of what has some ids or names.

    Raises:
        UsageError: no provider has the name.
    """

    def __init__(self, call: Client, owners: OwnerNames, only: Mapping[str, str | None]) -> None:
        self._call = call
        self._users = owners.users
        self._provider_names: dict[str, str] = {}
        ids = {"provider": self._provider_uuid, "project": owners.project_id, "user": owners.user_id}
        self._only = {name: ids.get(name, str)(value) for name, value in only.items() if value is not None}

    def entries(self, limit: int, *, follow: bool) -> Iterator[Document]:
        """Yield the newest entries, oldest first; with ``follow`` also those that come, until Ctrl-C."""
        with noted_interrupts() if follow else nullcontext(Interrupts()) as interrupts:
            cursor = self._answer(after="now")["cursor"] if follow else ""
            yield from reversed(self._answer(limit=str(limit))["entries"])
            while follow and not interrupts.has_come:
                answer = self._answer(limit=str(PORTION), after=cursor)
                cursor = answer["cursor"]
                yield from answer["entries"]
                if not answer["entries"]:
                    interrupts.wait(LOOK_EVERY_S)

    def row(self, entry: Document) -> tuple[str, ...]:
        """Return an entry by ``COLUMNS``; a provider that was deleted goes by its uuid."""
        provider, user = (entry.get(key, "") for key in ("provider_uuid", "by_user_id"))
        names = self._provider_names.get(provider, provider), self._users.get(user, user)
        ids = [entry.get(key, "") for key in ("route", "request_id")]
        change = (entry["time"], entry["kind"], entry["action"], _change(entry), entry.get("consumer_uuid", ""))
        return (*change, *names, *ids, provider, user)

    def _answer(self, **further: str) -> Any:
        document = self._call("GET", f"{PATH}?{urlencode(self._only | further | {'names': 'true'})}")
        self._provider_names.update(document.get("provider_names", {}))
        return document

    def _provider_uuid(self, text: str) -> str:
        """Return the uuid of the provider with a uuid, in any spelling, or a name."""
        if is_uuid_like(text):
            return canonical_uuid(text)
        providers = self._call("GET", f"/resource_providers?{urlencode({'name': text})}")["resource_providers"]
        if not providers:
            raise click.UsageError(f"No resource provider is named {text!r}; name a deleted provider by its uuid.")
        return str(providers[0]["uuid"])


def _print(journal_of: JournalReader, limit: int, *, follow: bool) -> None:
    """Print entries as they come; as YAML, all of them are one list."""
    chosen, columns = chosen_format(), chosen_columns()
    if chosen == "csv":
        click.echo(_chosen((), columns).csv(), nl=False)
    for entry in journal_of.entries(limit, follow=follow):
        if chosen == "table" and not columns:
            text = "\n".join(wrapped(entry_text(journal_of.row(entry)), available_width(), indent="    "))
        elif chosen == "json":
            text = json.dumps(entry)
        elif chosen == "yaml":
            text = yaml_text([entry]).rstrip("\n")
        else:
            row = _chosen([journal_of.row(entry)], columns)
            text = GAP.join(map(str, row.rows[0])) if chosen == "table" else row.csv(with_header=False)[:-1]
        click.echo(text)


def _chosen(rows: Sequence[Sequence[str]], columns: Sequence[str]) -> PrintedTable:
    table = PrintedTable(COLUMNS, rows)
    return table.chosen(columns) if columns else table


@journal.command("prune")
@click.option("--keep-days", type=click.IntRange(min=0), help="Overrides [journal] keep_days; 0: all rows but one.")
@configured
def prune_journal(*, keep_days: int | None) -> None:
    """Remove expired rows now, a thousand at a time. Servers do so themselves, more slowly."""
    settings = chosen_settings()
    days = keep_days if keep_days is not None else settings.journal.keep_days
    if keep_days is None and not days:
        raise ConfigurationError("[journal] keep_days is 0: everything is kept. Name the number with --keep-days.")
    with readable(settings, with_journal=True) as database:
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


def _change(entry: Document) -> str:
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
