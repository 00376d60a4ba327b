"""Journal rows as text, one line each."""

from placement.cli.output import Document
from placement.store.journal.watched import NAME_KINDS


def entry_text(entry: Document) -> str:
    """Return a row as one line: when, what, which provider or consumer, and who did it."""
    parts = [entry["time"], f"{entry['kind']} {entry['action']}", *_about(entry)]
    if "request_id" in entry:
        by = entry.get("by_user_id", "nobody")
        parts.append(f"by {by}: {entry.get('route', '')} [{entry['request_id']}]")
    return "  ".join(parts)


def _about(entry: Document) -> list[str]:
    named = (("of", "consumer_uuid"), ("on", "provider_uuid"))
    about = [f"{word} {entry[name]}" for word, name in named if name in entry]
    if entry["kind"] in NAME_KINDS:
        about.insert(0, " -> ".join(entry[side]["name"] for side in ("old", "new") if side in entry))
    elif "resource_class" in entry:
        about.insert(0, f"{entry['resource_class']} {_amounts(entry)}")
    elif "name" in entry:
        about.insert(0, entry["name"])
    elif "generation" in entry:
        about.append(f"generation {entry['generation']}")
    return about


def _amounts(entry: Document) -> str:
    """Return an amount with its sign, or both amounts of a change: "4", "-4", "4 -> 2"."""
    if entry["action"] == "changed":
        return f"{entry.get('old_amount')} -> {entry.get('new_amount')}"
    return f"-{entry['old_amount']}" if entry["action"] == "deleted" else str(entry.get("new_amount"))
