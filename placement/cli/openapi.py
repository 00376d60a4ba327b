"""``placement openapi``: this release's API reference, as a document for tools and a page for people."""

import json
from pathlib import Path

import click

from placement.openapi.document import document
from placement.openapi.page import page

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
