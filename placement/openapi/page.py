"""``placement openapi``: this release's API reference, as a document for tools and a page for people.

The page has no scripts and no external resources.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape

from placement.api.fields import Json
from placement.openapi.document import document

REFERENCE = re.compile("#/components/schemas/([A-Za-z0-9.]+-?[0-9.]*)")


def page(document: Json) -> str:
    """Return the HTML page for an OpenAPI document."""
    directory = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=directory, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"json": partial(json.dumps, indent=2), "linked": _linked, "text": _text}
    operations, schemas = [*_operations(document)], document["components"]["schemas"]
    template = environment.get_template("page.html")
    return template.render(info=document["info"], operations=operations, schemas=schemas) + "\n"


def _operations(document: Json) -> Iterator[Json]:
    """Yield each operation with its path, its method and the responses that it shares with others."""
    shared: Json = document["components"]["responses"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            answers = {
                status: shared[answer["$ref"].rpartition("/")[2]] if "$ref" in answer else answer
                for status, answer in operation["responses"].items()
            }
            yield {**operation, "path": path, "method": method.upper(), "responses": answers}


def _linked(text: str) -> Markup:
    """Return a JSON Schema with links to those that it references."""
    return Markup(REFERENCE.sub(r'<a href="#\1">\1</a>', str(escape(text))))  # noqa: S704 - escaped here


def _text(text: str) -> Markup:
    """Return a text whose backquoted parts are code."""
    parts = str(escape(text)).split("`")
    marked = "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
    return Markup(marked)  # noqa: S704 - escaped here


DOCUMENT, PAGE = "openapi.json", "index.html"


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Write {DOCUMENT} and {PAGE} into this directory instead of printing the document.",
)
def openapi(*, output: Path | None) -> None:
    """Print the API reference as an OpenAPI 3.1 document.

    The document is generated from this release's routes and schemas; the examples are answers on a temporary database.
    """
    made = document()
    text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
    if output is None:
        click.echo(text, nl=False)
        return
    output.mkdir(parents=True, exist_ok=True)
    (output / DOCUMENT).write_text(text, encoding="utf-8")
    (output / PAGE).write_text(page(made), encoding="utf-8")
