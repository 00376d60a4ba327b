"""Explanations as plain text: a waterfall for each demand, then the cause and what would help."""

from collections.abc import Iterator, Sequence

from placement.api.planner.explain_json import telling_steps
from placement.cli.output import Document, printable, table

BAR = 24
NAMES = ("uuid", "name", "root_provider_uuid")
"""The keys that identify a provider; all others show how it fails."""


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
        filled = -(-BAR * step["trees"] // most) if most else 0
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
