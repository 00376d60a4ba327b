"""``placement planner``, ``names`` and ``flavors``: checking planner files, and importing what stands in them."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

import click
import yaml

from placement.api.planner.headroom import request_of_text, requests_of_flavors
from placement.cli.configuration import configured
from placement.cli.output import PlainErrors
from placement.domain.device_types import DeviceSettings
from placement.errors import ConfigurationError, Invalid, InvalidAt
from placement.formats.flavors import flavor_query
from placement.formats.pasting import flavor_of, plain_fields
from placement.formats.volcano import NotFromVolcano, translated_from_volcano
from placement.settings.loading import read
from placement.settings.planner import PlannerSettings
from placement.settings.planner.document import DocumentEntry, read_document
from placement.settings.planner.sections import load_planner, planner_file


@click.group(cls=PlainErrors)
def planner() -> None:
    """Check or import a planner file."""


@planner.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@configured
@click.pass_context
def check(context: click.Context, file: Path | None) -> None:
    """Check and summarise a planner file; without FILE, the one that the server would read.

    An error is reported in one sentence that names line and key, and the exit status is 1.
    """
    if file is None:
        file = planner_file(read(context.meta["--config-file"], config_dirs=context.meta["--config-dir"]))
    if file is None:
        click.echo("There is no planner file: the defaults are in force.")
        return
    settings, document = load_planner(file), read_document(file)
    if document is not None:
        _check_flavors(settings.flavors, document)
    state = "is valid" if document else "is empty: the defaults are in force"
    click.echo(f"{file} {state}.")
    for line in _summary(settings):
        click.echo(f"  {line}")


@planner.command(name="import")
@click.argument("file", type=click.File(errors="replace"))
def import_(file: TextIO) -> None:
    """Translate a Volcano file to a planner file and print it.

    FILE is a scheduler configuration (actions, tiers with the plugin resource-strategy-fit), possibly in its ConfigMap,
    or YAML of queues, or both; - is standard input. Comments at the top list what could not be translated. Resources
    that are not device types in the sample planner.yaml keep their vendors' names.
    """
    try:
        text = translated_from_volcano(file.read(), DeviceSettings()).text()
    except NotFromVolcano as wrong:
        raise click.ClickException(str(wrong)) from wrong
    _check_text(text)
    click.echo(text, nl=False)


@click.group(cls=PlainErrors)
def names() -> None:
    """Import the names of projects and users."""


@names.command(name="import")
@click.option("--projects", type=click.File(), help='Output of "openstack project list -f json"; - is standard input.')
@click.option("--users", type=click.File(), help='Output of "openstack user list -f json".')
def import_names(*, projects: TextIO | None, users: TextIO | None) -> None:
    """Print the section "names" of planner.yaml for projects and users; it may also be a file of its own.

    In planner.yaml, "names: names.yaml" refers to such a file.
    """
    files = {kind: file for kind, file in (("projects", projects), ("users", users)) if file is not None}
    if not files:
        raise click.UsageError("Name a list with --projects, --users or both.")
    sections = {kind: _listed_names(file) for kind, file in files.items()}
    click.echo(yaml.safe_dump({"names": sections}, allow_unicode=True), nl=False)


def _listed_names(file: TextIO) -> dict[str, str]:
    try:
        return {str(row["ID"]): str(row["Name"]) for row in json.load(file)}
    except (ValueError, LookupError, TypeError, RecursionError) as wrong:
        raise click.ClickException(f"{file.name} is not a list with ID and Name in JSON.") from wrong


def _check_text(text: str) -> None:
    """Refuse a translation that a server would refuse, and show it."""
    with TemporaryDirectory() as name:
        path = Path(name) / "planner.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            load_planner(path)
        except ConfigurationError as wrong:
            reason = wrong.message.replace(f"{path}, ", "")
            raise click.ClickException(f"{text}\nThe planner file above would be refused: {reason}") from wrong


def _check_flavors(flavors: Mapping[str, str], document: DocumentEntry) -> None:
    """Refuse a flavor whose query string GET /allocation_candidates would refuse, as the server does at start."""
    for name, query in flavors.items():
        try:
            requests_of_flavors({name: query})
        except InvalidAt as wrong:
            line = document.mapping()["flavors"].mapping()[name].line
            raise click.ClickException(f"{document.file}, line {line}: {wrong.message}") from wrong


def _summary(settings: PlannerSettings) -> Iterator[str]:
    yield f"profiles: {', '.join(settings.profiles)}; {settings.default_profile} orders GET /allocation_candidates"
    yield "levels: " + ", ".join(f"{name} ({trait})" for name, trait in settings.levels.items())
    yield f"fair shares count: {', '.join(settings.fair_share.classes)}"
    yield f"device types: {', '.join(settings.devices.types)}"
    for kind, groups in settings.aggregates.items():
        yield f"aggregates of kind {kind}: {', '.join(groups)}"
    yield f"names: {len(settings.names.projects)} projects, {len(settings.names.users)} users"


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
        raise ValueError("a flavor needs a name.")
    return fields
