"""``placement openapi``: this release's API reference, as a document for tools and a page for people.

The page has no scripts and no external resources.
"""

import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import click

from placement.api.fields import Json
from placement.openapi.document import document

REFERENCE = re.compile("#/components/schemas/([A-Za-z0-9.]+-?[0-9.]*)")

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem; color: #1c2330; }
nav ul { columns: 2; list-style: none; padding: 0; } nav li { break-inside: avoid; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { background: #f3f5f8; overflow-x: auto; padding: .6rem; border-radius: 4px; }
h2 { border-bottom: 1px solid #ccd3dd; margin-top: 2.5rem; } h3 code { font-size: 15px; }
.method { display: inline-block; min-width: 4rem; font-weight: 600; } .versions { color: #5a6576; font-size: 13px; }
table { border-collapse: collapse; } td, th { border-top: 1px solid #dfe4eb; padding: .25rem .8rem .25rem 0;
text-align: left; vertical-align: top; } summary { cursor: pointer; }
@media (prefers-color-scheme: dark) { body { background: #14181f; color: #dde3ec; } pre { background: #1f2630; }
td, th, h2 { border-color: #38414f; } .versions { color: #97a3b6; } a { color: #7db2ff; } }
"""


def page(document: Json) -> str:
    """Return the HTML page for an OpenAPI document."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Json) -> Iterator[str]:
    info = document["info"]
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    yield f"<title>{escape(info['title'])} API</title><style>{STYLE}</style></head><body>"
    yield f"<h1>{escape(info['title'])} API <small>{escape(info['version'])}</small></h1>"
    yield from (f"<p>{_text(part)}</p>" for part in info["description"].strip().split("\n\n"))
    yield "<nav><ul>"
    for path, method, operation in _operations(document):
        yield f'<li><a href="#{_anchor(operation)}"><span class="method">{method}</span><code>{path}</code></a></li>'
    yield "</ul></nav>"
    tag = None
    for path, method, operation in _operations(document):
        if operation["tags"][0] != tag:
            tag = operation["tags"][0]
            yield f"<h2>{escape(tag)}</h2>"
        yield from _operation(path, method, operation)
    yield "<h2>Shapes</h2><p>What several answers have in common.</p>"
    for name, schema in document["components"]["schemas"].items():
        yield f'<section id="{name}"><h3><code>{name}</code></h3>{_schema(schema)}</section>'
    yield "</body></html>"


def _operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            answers = {status: _resolved(answer, document) for status, answer in operation["responses"].items()}
            yield escape(path), method.upper(), {**operation, "responses": answers}


def _resolved(answer: Json, document: Json) -> Json:
    """Return a response, or the shared one that it references."""
    shared: Json = document["components"]["responses"]
    return shared[answer["$ref"].rpartition("/")[2]] if "$ref" in answer else answer


def _operation(path: str, method: str, operation: Json) -> Iterator[str]:
    yield f'<section id="{_anchor(operation)}"><h3><span class="method">{method}</span> <code>{path}</code></h3>'
    yield f"<p>{_text(operation['summary'])}"
    if versions := operation.get("x-openstack-microversions"):
        yield f' <span class="versions">microversions {versions["min"]} to {versions["max"]}</span>'
    yield "</p>"
    if parameters := [each for each in operation["parameters"] if "name" in each]:
        yield "<table><tr><th>parameter</th><th>in</th><th>since</th><th></th></tr>"
        yield from map(_parameter, parameters)
        yield "</table>"
    if body := operation.get("requestBody"):
        content = body["content"]["application/json"]
        yield f"<details><summary>Body</summary>{_schema(content['schema'])}</details>"
        yield from _examples("sent", content)
    for status, answer in operation["responses"].items():
        yield f"<p><b>{status}</b> {_text(answer['description'])}</p>"
        yield from _content(int(status), answer.get("content", {}).get("application/json", {}))
    yield "</section>"


def _content(status: int, content: Json) -> Iterator[str]:
    if content and status < 400:  # all errors have the same shape
        yield f"<details><summary>Schema</summary>{_schema(content['schema'])}</details>"
    yield from _examples("answer", content)


def _parameter(parameter: Json) -> str:
    since = parameter.get("x-openstack-since", "")
    name, place = escape(parameter["name"]), parameter["in"]
    text = _text(parameter["description"])
    return f"<tr><td><code>{name}</code></td><td>{place}</td><td>{since}</td><td>{text}</td></tr>"


def _examples(kind: str, content: Json) -> Iterator[str]:
    for title, example in content.get("examples", {}).items():
        summary = f"{escape(title)}: {kind} <code>{escape(example['summary'])}</code>"
        yield f"<details><summary>{summary}</summary>{_code(example['value'])}</details>"


def _code(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2))}</pre>"


def _schema(schema: Json) -> str:
    """Render a JSON Schema, with links to those it references."""
    return REFERENCE.sub(r'<a href="#\1">\1</a>', _code(schema))


def _text(text: str) -> str:
    """Escape a text and render backquoted parts as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def _anchor(operation: Json) -> str:
    return escape(str(operation["operationId"]), quote=True)


DOCUMENT, PAGE = "openapi.json", "index.html"


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Write {DOCUMENT} and {PAGE} into this directory instead of printing the document.",
)
def openapi(*, output: Path | None) -> None:
    """Print the API reference as an OpenAPI 3.1 document.

    It is generated from this release's routes and schemas; the examples are answers on a temporary database.
    """
    made = document()
    text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
    if output is None:
        click.echo(text, nl=False)
        return
    output.mkdir(parents=True, exist_ok=True)
    (output / DOCUMENT).write_text(text, encoding="utf-8")
    (output / PAGE).write_text(page(made), encoding="utf-8")
