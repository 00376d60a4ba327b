"""``placement flavors``: conversion of nova's flavors to requests in the planner file."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import click
import yaml

from placement.api.planner.headroom import request_of_text
from placement.domain.flavors import Flavor, flavor_query
from placement.errors import Invalid


@click.group()
def flavors() -> None:
    """Convert nova's flavors to requests."""


@flavors.command(name="import")
@click.argument("file", type=click.File())
def import_flavors(file: TextIO) -> None:
    """Print the section "flavors" of planner.yaml for the flavors in FILE, and "private_flavors" if any are private.

    FILE is the output of "openstack flavor list --long -f json" or "openstack flavor show -f json"; - is standard
    input. Properties that only concern nova are listed on standard error, and so are flavors that are not a valid
    request, which are left out.
    """
    try:
        listed = json.load(file)
    except ValueError as error:
        raise click.ClickException(f"{file.name} is not JSON: {error}") from error
    queries, private = {}, []
    for entry in listed if isinstance(listed, list) else [listed]:
        name, flavor = _flavor(entry)
        try:
            found = flavor_query(flavor)
        except ValueError as error:
            raise click.ClickException(f"{name}: {error}") from error
        if found.without_meaning:
            click.echo(f"{name}: not asked of Placement: {', '.join(found.without_meaning)}", err=True)
        if fault := _fault(found.query):
            click.echo(f"{name}: left out: {fault}", err=True)
        else:
            queries[name] = found.query
            private += [name] if _is_private(entry) else []
    sections = {"flavors": queries, **({"private_flavors": private} if private else {})}
    click.echo(yaml.safe_dump(sections, sort_keys=False, width=1000), nl=False)


def _fault(query: str) -> str | None:
    """Return why a server would not start with this query in its planner file; None if it would."""
    try:
        request_of_text(query)
    except Invalid as wrong:
        return wrong.message
    return None


def _flavor(entry: Any) -> tuple[str, Flavor]:
    """Return a flavor's name and content from the output of either command."""
    if not isinstance(entry, dict):
        raise click.ClickException("Expected flavors as objects, as the openstack command prints them.")
    said = {_plain(str(key)): value for key, value in entry.items()}
    if not isinstance(said.get("name"), str):
        raise click.ClickException("A flavor has no name.")
    numbers = {key: _number(said["name"], key, said.get(key)) for key in ("vcpus", "ram", "disk", "ephemeral", "swap")}
    return said["name"], Flavor(**numbers, extra_specs=dict(_specs(said.get("properties"))))


def _is_private(entry: dict[str, Any]) -> bool:
    """Tell whether only some projects may use a flavor: ``Is Public`` or ``os-flavor-access:is_public`` is false."""
    return {_plain(key).replace(" ", "_"): value for key, value in entry.items()}.get("is_public") is False


def _plain(key: str) -> str:
    """Return a field's normalised name: ``VCPUs`` and ``OS-FLV-EXT-DATA:ephemeral`` have several spellings."""
    return key.rpartition(":")[2].lower()


def _number(name: str, key: str, value: Any) -> int:
    if value in (None, ""):
        return 0
    if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()):
        return int(value)
    raise click.ClickException(f"{name}: {key} is {value!r}, not a number.")


def _specs(properties: Any) -> Iterator[tuple[str, str]]:
    """Yield the extra specs from an object, or from a text such as ``a='1', b='2'`` that older clients print."""
    if isinstance(properties, Mapping):
        yield from ((str(key), str(value)) for key, value in properties.items())
    elif isinstance(properties, str):
        for pair in filter(None, properties.split(", ")):
            key, _equals, value = pair.partition("=")
            yield key, value.strip("'")
