"""What pages show of the journal: changes, who made them, and what a provider had at a point in time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from placement.api.call import Call
from placement.api.planner.journal import RULE, keeps_journal
from placement.api.planner.journal_feed import moment_of
from placement.domain.quantities import amount_in_words
from placement.errors import Invalid, NotFound
from placement.services.journal import changes as latest
from placement.services.journal import read_history
from placement.store.journal.history import PastProvider, TooLongAgo
from placement.store.journal.reading import Entry, NamedChange
from placement.ui.filters import visible

SHOWN, READ = 20, 200
"""How many changes a page shows, and how many rows of the journal it reads for that."""

RowsOfChange = list[NamedChange]
"""What one request changed of one tree and consumer, oldest row first; without a request, in the same second."""

_MARKS = {"created": "added", "deleted": "removed"}
_OF_PROVIDERS = {"created": "provider created", "deleted": "provider deleted"}


@dataclass(frozen=True, slots=True)
class Past:
    """The time asked for, as typed, and the result: the provider at that time, or why there is none."""

    text: str
    time: datetime | None = None
    provider: PastProvider[str] | None = None
    fault: str = ""


def sees_journal(call: Call) -> bool:
    """Tell whether there is a journal and this visitor may read it."""
    return keeps_journal(call) and call.is_allowed(RULE, project_id=None)


def shown_changes(
    call: Call, *, providers: Sequence[str] = (), consumer: str | None = None, limit: int = SHOWN
) -> list[RowsOfChange] | None:
    """Return the changes that a page shows, or None if there is no journal or this visitor may not read it."""
    if not sees_journal(call):
        return None
    rows = latest(call.database, limit=READ, providers=providers, consumer=consumer)
    changes: dict[tuple[object, ...], list[NamedChange]] = {}
    for row in rows:
        entry = row.entry
        request = entry.request_id or entry.time.replace(microsecond=0)
        changes.setdefault((request, entry.consumer_uuid, row.root_name or entry.root_provider_id), []).append(row)
    if len(rows) == READ and len(changes) > 1:
        changes.popitem()  # of which older rows may be missing
    return [change[::-1] for change in changes.values()][:limit]


def shown_past(call: Call, uuid: str) -> Past:
    """Return what a provider had at the time given in the query string."""
    text = call.request.args.get("at", "").strip()
    if not text or not keeps_journal(call):
        return Past(text)
    call.authorize(RULE, project_id=None)
    try:
        time = moment_of(text)
        return Past(text, time, read_history(call.database, uuid, time))
    except (Invalid, NotFound, TooLongAgo) as error:
        return Past(text, fault=error.message)


def in_words(change: RowsOfChange) -> list[tuple[str | None, str]]:
    """Describe a change in a few words for each provider, beside the provider's name."""
    by_provider = groupby(change, key=lambda row: row.name)
    return [(name, ", ".join([_words(row.entry) for row in rows])) for name, rows in by_provider]


def _words(entry: Entry) -> str:
    if entry.kind == "allocation":
        return f"{entry.resource_class} {_amounts(entry)}"
    if entry.kind == "inventory":
        return f"inventory of {entry.resource_class}: {_stock(entry)}"
    if entry.kind == "provider":
        return _OF_PROVIDERS.get(entry.action) or _place(entry)
    return f"{entry.kind} {visible(entry.name or '(deleted)')} {_MARKS[entry.action]}"


def _place(entry: Entry) -> str:
    changed = _changed(entry)
    if changed == ["root_provider_uuid"] and (entry.old or {}).get("root_provider_uuid") is None:
        return "became a root"
    return "new " + " and ".join(name.removesuffix("_provider_uuid") for name in changed)


def _amounts(entry: Entry) -> str:
    if entry.old_amount is None:
        return f"{_in_words(entry, entry.new_amount)} taken"
    old = _in_words(entry, entry.old_amount)
    return f"{old} given back" if entry.new_amount is None else f"{old} → {_in_words(entry, entry.new_amount)}"


def _stock(entry: Entry) -> str:
    if entry.old is None or entry.new is None:
        return "removed" if entry.new is None else f"total {_in_words(entry, entry.new['total'])}"
    return ", ".join([f"{name.replace('_', ' ')} {_change(entry, name)}" for name in _changed(entry)])


def _change(entry: Entry, name: str) -> str:
    old, new = (entry.old or {})[name], (entry.new or {})[name]
    if name == "allocation_ratio":
        return f"{old:,g} → {new:,g}"
    return f"{_in_words(entry, old)} → {_in_words(entry, new)}"


def _in_words(entry: Entry, amount: float | None) -> str:
    return amount_in_words(amount or 0, entry.resource_class or "")


def _changed(entry: Entry) -> list[str]:
    old: dict[str, Any] = entry.old or {}
    return [name for name, value in (entry.new or {}).items() if old.get(name) != value]
