"""Headroom as plain text: tables with bars."""

from collections.abc import Iterator, Sequence

from placement.cli.output import Document, printable, table

BAR = 20


def flavors_text(document: Document, *, width: int | None = None) -> Iterator[str]:
    """Yield the lines for several requests: a row for each, with a bar for the trees that have room."""
    header = ("flavor", "fits", "trees", "", "the others lack")
    yield from table(header, [_row(name, one) for name, one in document["headroom"].items()], width=width)
    yield ""
    yield "trees: those with room, of those that could serve the flavor. Each flavor is counted on its own."


def headroom_text(document: Document, *, width: int | None = None) -> Iterator[str]:
    """Yield the lines for one request: the number of copies, where they fit, and what prevents more."""
    yield f"{_copies(document)} more fit."
    yield document["message"]
    if document["stranded"]:
        amounts = ", ".join(f"{amount} {name}" for name, amount in document["stranded"].items())
        yield f"Free where none fits: {amounts}."
    most = max([tree["fits"] for tree in document["trees"]], default=0)
    if document["trees"]:
        yield ""
        rows = [(printable(tree["name"]), _copies(tree), _bar(tree["fits"], most)) for tree in document["trees"]]
        yield from table(("most room", "fits", ""), rows, width=width)
    if document["one_more"]:
        yield ""
        models = document["one_more"]
        rows = [(printable(model["like"]["name"]), f"{model['trees']:>4}", _copies(model)) for model in models]
        yield from table(("one more like", "trees", "buys"), rows, width=width)


def _row(name: str, one: Document) -> Sequence[str]:
    with_room, of = one["trees_with_room"], one["trees_with_room"] + one["trees_without_room"]
    lacking = [f"{_names(entry['resource_classes'])} ({entry['trees']})" for entry in one["lacking"]]
    return printable(name), _copies(one), f"{with_room}/{of}", _bar(with_room, of), ", ".join(lacking)


def _names(classes: Sequence[str]) -> str:
    return " and ".join(classes) or "it in one place"


def _copies(counted: Document) -> str:
    return str(counted["fits"]) if counted["complete"] else f"{counted['fits']} to {counted['at_most']}"


def _bar(part: int, of: int) -> str:
    """Return a bar; anything above 0 is visible, however small."""
    filled = -(-BAR * part // of) if of else 0
    return "#" * filled + "." * (BAR - filled)
