"""``placement-status upgrade check``: readiness for this release. Output and exit status are the reference's."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import click

from placement.auth.policy import policy_file
from placement.cli.configuration import chosen_settings, configured, connected
from placement.errors import PlacementError
from placement.settings import Settings
from placement.store.connection.database import Database
from placement.store.lifecycle.maintenance import looking
from placement.store.lifecycle.reference_schema import incomplete_consumers, providers_without_root

TITLE = "Upgrade Check Results"
POLICY_CHECK = "Policy File JSON to YAML Migration"
WIDTH = 60
BROKEN = 255
"""The exit status if checks could not run, distinct from all of their results."""

NO_ROOT = 'Some resource providers name no root provider. Run "placement-manage db online_data_migrations".'
NO_CONSUMER = (
    'Allocations are held by {} consumers that have no record. Run "placement-manage db online_data_migrations".'
)
JSON_POLICY = (
    "The policy file {} is written in JSON, which is deprecated. Convert it to YAML with "
    "oslopolicy-convert-json-to-yaml."
)


class CheckResult(IntEnum):
    """The result of a check; the worst one is the exit status."""

    SUCCESS = 0
    WARNING = 1
    FAILURE = 2


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its result."""

    name: str
    outcome: CheckResult
    details: str | None = None


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@configured
def main() -> None:
    """Check the state of Placement."""


@main.group()
@configured
def upgrade() -> None:
    """Upgrades to this release."""


@upgrade.command()
@click.option("--json", "as_json", is_flag=True, help="Output the results in JSON format.")
@configured
@click.pass_context
def check(context: click.Context, *, as_json: bool) -> None:
    """Check whether the database and the policy file are ready."""
    try:
        settings = chosen_settings()
        with connected(settings) as database:
            checks = [*_database_checks(database), _checked(POLICY_CHECK, _policy_problem(settings))]
    except PlacementError as error:
        click.echo(f"Error: {error.message}", err=True)
        context.exit(BROKEN)
    rows = [{"check": result.name, "result": result.outcome, "details": result.details} for result in checks]
    document = {"name": TITLE, "checks": rows}
    click.echo(json.dumps(document) if as_json else _stack(TITLE, [_cell(result) for result in checks]))
    context.exit(max(result.outcome for result in checks))


def _checked(name: str, problem: str | None, *, weight: CheckResult = CheckResult.FAILURE) -> Check:
    return Check(name, weight if problem else CheckResult.SUCCESS, problem)


def _database_checks(database: Database) -> list[Check]:
    with looking(database.engine) as connection:
        rootless, consumers = providers_without_root(connection), incomplete_consumers(connection)
    no_consumer = NO_CONSUMER.format(consumers) if consumers else None
    return [
        _checked("Missing Root Provider IDs", NO_ROOT if rootless else None),
        _checked("Incomplete Consumers", no_consumer, weight=CheckResult.WARNING),
    ]


def _policy_problem(settings: Settings) -> str | None:
    path = policy_file(settings)
    try:
        json.loads(Path(path).read_bytes() if path is not None else "")
    except (ValueError, OSError):
        return None
    return JSON_POLICY.format(path)


def _cell(check: Check) -> str:
    details = None
    if check.details is not None:
        details = "\n".join(textwrap.wrap(check.details, WIDTH, subsequent_indent="  "))
    return f"Check: {check.name}\nResult: {check.outcome.name.capitalize()}\nDetails: {details}"


def _stack(title: str, cells: Sequence[str]) -> str:
    """Return a single column of multi-line cells, separated by rules."""
    width = max(len(line) for cell in (title, *cells) for line in cell.split("\n"))
    rule = f"+{'-' * (width + 2)}+"
    drawn = ["\n".join(f"| {line.ljust(width)} |" for line in cell.split("\n")) for cell in (title, *cells)]
    return "\n".join([rule, *(part for cell in drawn for part in (cell, rule))])
