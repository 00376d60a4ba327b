"""``placement-manage`` for deployment tools: the reference's subcommands, output and exit statuses."""

from collections.abc import Callable, Sequence

import click

from placement import __version__
from placement.cli.configuration import chosen_settings, configured, connected
from placement.cli.output import PlainErrors, progress
from placement.errors import ConfigurationError, PlacementError
from placement.settings import Settings
from placement.store.connection.database import Database
from placement.store.lifecycle import schema
from placement.store.lifecycle.maintenance import exclusively
from placement.store.lifecycle.reference_schema import create_incomplete_consumers, set_root_provider_ids

BATCH = 50
MAX_COUNT = 2**31 - 1

NO_COMMAND = 1
SOME_LEFT = 1
FAILED = 2
NO_NUMBER = 127
"""The reference's exit statuses."""


@click.group(cls=PlainErrors, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@configured
@click.version_option(__version__, message="%(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Manage the database of Placement."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(NO_COMMAND)


@main.group(invoke_without_command=True)
@configured
@click.pass_context
def db(context: click.Context) -> None:
    """Manage the database."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@db.command()
@configured
def sync() -> None:
    """Bring the database up to date."""
    settings = _settings()
    with connected(settings, creates=True) as database, progress() as tell:
        for note in schema.upgrade(database.engine, tell, keep_journal=settings.journal.enabled):
            click.echo(f"Warning: {note}", err=True)


@db.command()
@configured
def version() -> None:
    """Show the version of the database."""
    with connected(_settings(), creates=True) as database:
        click.echo(str(schema.current(database.engine).reference_revision))


@db.command()
@click.argument("version")
@configured
def stamp(version: str) -> None:
    """Write a version into the database without changing anything else."""
    with connected(_settings(), creates=True) as database:
        schema.stamp(database.engine, version)


@db.command("online_data_migrations")
@click.option("--max-count", metavar="<number>", help="Complete at most this many.")
@configured
@click.pass_context
def online_data_migrations(context: click.Context, max_count: str | None) -> None:
    """Complete rows that old releases left incomplete."""
    if max_count is not None and not (max_count.isdecimal() and int(max_count)):
        click.echo("Must supply a positive value for max_count")
        context.exit(NO_NUMBER)
    settings = _settings()
    with connected(settings) as database:
        context.exit(_migrate(database, settings, None if max_count is None else min(int(max_count), MAX_COUNT)))


def _settings() -> Settings:
    settings = chosen_settings()
    if not settings.database.connection:
        raise ConfigurationError("[placement_database] connection is not set; no configuration was found.")
    return settings


Migration = Callable[[int], int]


def _migrations(database: Database, settings: Settings) -> dict[str, Migration]:
    """Return functions that each complete at most a given number of rows, and return how many they completed."""
    project_id = settings.placement.incomplete_consumer_project_id
    user_id = settings.placement.incomplete_consumer_user_id

    def roots(limit: int) -> int:
        with exclusively(database.engine) as connection:
            return set_root_provider_ids(connection, limit)

    def consumers(limit: int) -> int:
        with exclusively(database.engine) as connection:
            return create_incomplete_consumers(connection, limit, project_id=project_id, user_id=user_id)

    return {"set_root_provider_ids": roots, "create_incomplete_consumers": consumers}


def _migrate(database: Database, settings: Settings, limit: int | None) -> int:
    """Complete rows in batches, or one batch of ``limit``; return the exit status."""
    if limit is None:
        click.echo(f"Running batches of {BATCH} until complete")
    migrations = _migrations(database, settings)
    done: dict[str, int] = {}
    while True:
        batch, failed = _batch(migrations, limit or BATCH)
        for name, number in batch.items():
            done[name] = done.get(name, 0) + number
        if limit is not None or not any(batch.values()):
            break
    click.echo(_box(("Migration", "Total Found", "Completed"), [(name, n, n) for name, n in done.items()]))
    are_left = any(batch.values())
    if failed and not are_left:
        click.echo("Some migrations failed unexpectedly.")
        return FAILED
    return SOME_LEFT if are_left else 0


def _batch(migrations: dict[str, Migration], limit: int) -> tuple[dict[str, int], bool]:
    done: dict[str, int] = {}
    failed = False
    for name, migrate in migrations.items():
        try:
            done[name] = migrate(limit - sum(done.values()))
        except PlacementError as error:
            click.echo(f"Error attempting to run {name}: {error.message}")
            done[name], failed = 0, True
        if done[name]:
            click.echo(f"{done[name]} rows matched query {name}, {done[name]} migrated")
        if sum(done.values()) >= limit:
            break
    return done, failed


def _box(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table as the reference prints it: scripts may parse it."""
    texts = [list(header)] + [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        "|" + "|".join(f" {cell:^{width}} " for cell, width in zip(row, widths, strict=True)) + "|" for row in texts
    ]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule] if rows else [rule, lines[0], rule, rule])
