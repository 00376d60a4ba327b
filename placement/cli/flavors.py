"""``placement flavors``: conversion of nova's flavors to requests in the planner file."""

import json
from typing import Any, TextIO

import click
import yaml

from placement.api.planner.headroom import request_of_text
from placement.cli.output import PlainErrors
from placement.domain.flavor_texts import flavor_of, plain_fields
from placement.domain.flavors import flavor_query
from placement.errors import Invalid


@click.group(cls=PlainErrors)
def flavors() -> None:
    """Convert nova's flavors to requests."""


@flavors.command(name="import")
@click.argument("file", type=click.File())
@click.option("--root-required", default="", help="Traits that this nova requires of each host, such as OWNER_NOVA.")
def import_flavors(file: TextIO, root_required: str) -> None:
    """Print the section "flavors" of planner.yaml for the flavors in FILE, and "private_flavors" if any are private.

    FILE is the output of "openstack flavor list --long -f json" or "openstack flavor show -f json"; - is standard
    input. Properties that only concern nova are listed on standard error, and so are flavors that nova or Placement
    refuses, which are left out.
    """
    try:
        listed = json.load(file)
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"{file.name} is not JSON: {error}") from error
    queries, private = {}, []
    for number, entry in enumerate(listed if isinstance(listed, list) else [listed], start=1):
        name = f"flavor {number}"
        try:
            fields = _fields(entry)
            name = str(fields["name"])
            translated = flavor_query(flavor_of(entry), root_required=filter(None, root_required.split(",")))
            request_of_text(translated.query)
        except (ValueError, Invalid) as wrong:
            click.echo(f"{name}: left out: {wrong}", err=True)
            continue
        if translated.without_meaning:
            click.echo(f"{name}: not asked of Placement: {', '.join(translated.without_meaning)}", err=True)
        queries[name] = translated.query
        private += [name] if fields.get("is_public") is False else []
    if not queries:
        raise click.ClickException(f"{file.name} has no flavor that is a request.")
    sections = {"flavors": queries, **({"private_flavors": private} if private else {})}
    click.echo(yaml.safe_dump(sections, sort_keys=False, width=1000), nl=False)


def _fields(entry: Any) -> dict[str, Any]:
    """Return a flavor's fields by normalised names."""
    fields = plain_fields(entry) if isinstance(entry, dict) else {}
    if not isinstance(fields.get("name"), str):
        raise ValueError("it has no name.")
    return fields
