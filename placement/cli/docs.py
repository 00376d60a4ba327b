"""``placement docs``: the reference pages, generated from what they describe, as Markdown or as man pages."""

import inspect
import json
import re
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from placement import __version__
from placement.cli.http_worker import Limits
from placement.openapi.document import body_schemas
from placement.policies import list_rules
from placement.settings.planner.keys import KEYS
from placement.settings.values import MAX_BODY
from placement.telemetry.record import MEANINGS

WIDTH, BAR = 120, "\\|"
WHOLE_BODIES = {"": "aggregates", "{}": "consumers{}"}
"""What the two bodies are called that are themselves a list, and an object of any keys."""


class ManualSection(NamedTuple):
    """A part of a page: paragraphs, a command as it is typed, and terms with their meanings."""

    heading: str
    text: str = ""
    usage: str = ""
    terms: Iterable[tuple[str, str]] = ()


class ManualPage(NamedTuple):
    """A page. ``volume`` is its section of the manual: 1 for commands, 5 for files, 7 for the rest."""

    name: str
    volume: int
    summary: str
    sections: Iterable[ManualSection]


def pages() -> Iterator[ManualPage]:
    """Yield every generated page."""
    from placement.cli.main import main  # noqa: PLC0415  (it imports this command)

    with click.Context(main, info_name="placement", max_content_width=WIDTH) as context:
        for name in main.list_commands(context):
            command = main.get_command(context, name)
            assert command is not None
            sections = [*_commands(command, f"placement {name}", context)]
            yield ManualPage(f"placement-{name}", 1, command.get_short_help_str(limit=WIDTH).rstrip("."), sections)
    yield ManualPage("planner.yaml", 5, "the file that says what is best", _planner_keys())
    yield ManualPage(
        "placement-metrics", 7, "the metrics at /metrics", [ManualSection("Metrics", terms=MEANINGS.items())]
    )
    yield ManualPage("placement-policy", 7, "the rules of policy.yaml", [ManualSection("Rules", terms=_rules())])
    yield ManualPage("placement-limits", 7, "the limits of requests", _limits())


def _commands(command: click.Command, name: str, parent: click.Context) -> Iterator[ManualSection]:
    context = click.Context(command, parent=parent, info_name=name.rpartition(" ")[2])
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    terms = [record for record in records if record is not None and "--help" not in record[0]]
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield ManualSection(name, inspect.cleandoc(command.help or ""), usage, terms)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            below = command.get_command(context, inner)
            assert below is not None
            yield from _commands(below, f"{name} {inner}", context)


def _planner_keys() -> Iterator[ManualSection]:
    sections: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key in KEYS:
        default = "" if key.default is None else f" Default: {_shown(key.default)}."
        sections[key.path.partition(".")[0]].append((key.path, f"{key.kind}. {key.meaning}{default}"))
    for name, terms in sections.items():
        yield ManualSection(name, terms=terms)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value).replace('"', "")


def _rules() -> Iterator[tuple[str, str]]:
    for rule in list_rules():
        yield rule.name, f"{rule.description} Default: {rule.check_str}."


def _limits() -> Iterator[ManualSection]:
    at_most: dict[int, set[str]] = defaultdict(set)
    for schema in body_schemas():
        for name, limit in limits_in(schema, ""):
            at_most[limit].add(WHOLE_BODIES.get(name, name))
    listed = [(f"{limit:,}", ", ".join(sorted(at_most[limit]))) for limit in sorted(at_most)]
    text = "A larger one is refused with 400. [] is a list inside a list, {} an object whose keys are the client's."
    yield ManualSection("Lists and objects in a body", text, terms=listed)
    clients = Limits()
    yield ManualSection(
        "Slow clients",
        "With the shipped worker class, which placement serve uses.",
        terms=[
            (f"{clients.head_s} seconds", "to send the head of a request, at most 1 MiB; then 408, or 431."),
            (f"{clients.body_s} seconds", "to send the body; then 408."),
            (
                f"{clients.send_s} seconds",
                f"to take the answer, one more for each {clients.slowest_bytes_per_s >> 10} KiB; then a reset.",
            ),
        ],
    )
    yield ManualSection(
        "Other limits",
        terms=[
            (f"{MAX_BODY >> 20} MiB", "a body; then 413. Set by [oslo_middleware] max_request_body_size."),
            ("254", "levels of nesting in a body; then 400."),
            ("10,000", "trees that all entries of with add together."),
        ],
    )


def limits_in(schema: Mapping[str, Any], name: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the limit of every list, and with ``{}`` of every object of any keys, in a schema."""
    if "array" in schema.get("type", ()):
        yield name, schema["maxItems"]
    if "patternProperties" in schema or schema.get("additionalProperties"):
        yield name + "{}", schema["maxProperties"]
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            yield from limits_in(schema[key], f"{name}[]" if key == "items" else name)
    alternatives = [subschema for key in ("anyOf", "oneOf", "allOf") for subschema in schema.get(key, ())]
    for subschema in [*alternatives, *schema.get("patternProperties", {}).values()]:
        yield from limits_in(subschema, name)
    for inner, part in schema.get("properties", {}).items():
        yield from limits_in(part, inner)


def markdown(page: ManualPage) -> str:
    """Return a page as Markdown."""
    parts = [f"# {page.name}", "<!-- Generated by: placement docs --output docs/reference -->", f"{page.summary}."]
    parts[2] = parts[2][0].upper() + parts[2][1:]
    for section in page.sections:
        parts.append(f"## {section.heading}")
        parts += [f"    {section.usage}"] if section.usage else []
        parts += [textwrap.indent(part, "    ") if is_verbatim else textwrap.fill(part, WIDTH, break_on_hyphens=False)
                  for is_verbatim, part in _paragraphs(section.text)]  # fmt: skip
        rows = [f"| `{term.replace('|', BAR)}` | {_in_cell(meaning)} |" for term, meaning in section.terms]
        parts += ["\n".join(["| | |", "|---|---|", *rows])] if rows else []
    return "\n\n".join(parts) + "\n"


def _in_cell(text: str) -> str:
    return re.sub(r"([|*<])", r"\\\1", " ".join(text.split()))


def _paragraphs(text: str) -> Iterator[tuple[bool, str]]:
    """Yield whether a paragraph keeps its lines, and the paragraph."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph:
            yield (
                paragraph.startswith("\b"),
                paragraph.removeprefix("\b\n") if paragraph.startswith("\b") else " ".join(paragraph.split()),
            )


def man(page: ManualPage) -> str:
    """Return a page in the language of man."""
    lines = [f'.TH "{page.name.upper()}" {page.volume} "" "placement-server {__version__}"', ".SH NAME"]
    lines.append(f"{page.name} \\- {_roff(page.summary)}")
    for section in page.sections:
        lines.append(f'.SH "{_roff(section.heading.upper())}"')
        lines += [".B " + _roff(section.usage)] if section.usage else []
        for is_verbatim, paragraph in _paragraphs(section.text):
            lines += [".PP", ".nf", _roff(paragraph), ".fi"] if is_verbatim else [".PP", _roff(paragraph)]
        for term, meaning in section.terms:
            lines += [".TP", ".B " + _roff(term), _roff(" ".join(meaning.split()))]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    return re.sub(r"(?m)^(?=['.])", r"\\&", text.replace("\\", "\\e").replace("-", "\\-"))


WRITERS: Mapping[str, tuple[Callable[[ManualPage], str], str]] = {"markdown": (markdown, "md"), "man": (man, "")}


def written(form: str) -> dict[str, str]:
    """Return the name and the text of each page in a form."""
    write, ending = WRITERS[form]
    return {f"{page.name}.{ending or page.volume}": write(page) for page in pages()}


@click.command()
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="Directory for the pages."
)
@click.option(
    "--format", "form", type=click.Choice([*WRITERS]), default="markdown", show_default=True, help="Form of the pages."
)
def docs(*, output: Path, form: str) -> None:
    """Write the reference pages: commands, planner.yaml, metrics, policy rules and limits."""
    output.mkdir(parents=True, exist_ok=True)
    for name, text in written(form).items():
        (output / name).write_text(text, encoding="utf-8")
