"""``placement db``: create, adopt, verify and release the database."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace

import click

from placement.cli.configuration import chosen_settings, configured, connected, readable, url_without_passwords
from placement.cli.output import PlainErrors, PrintedTable, Report, listed, progress, show, whole
from placement.errors import ConfigurationError
from placement.settings import Settings, with_own_database
from placement.store.checks import schema_check
from placement.store.checks.schema_check import Finding, Owner
from placement.store.connection.database import Database
from placement.store.lifecycle import copying, schema


@click.group(cls=PlainErrors)
@configured
def db() -> None:
    """Manage the database."""


@db.command()
@configured
def upgrade() -> None:
    """Create, adopt or migrate the database.

    An empty database gets all tables. A database of openstack-placement is adopted in place: this server's tables are
    added to the existing ones, and both servers may write until "placement db release".
    """
    with _database(creates=True) as (database, settings), progress() as tell:
        notes = schema.upgrade(database.engine, tell, keep_journal=settings.journal.enabled)
        state = schema.current(database.engine)
    for note in notes:
        click.echo(f"Warning: {note}", err=True)
    click.echo(f"The database is at revision {state.revision}.")


@db.command()
@listed
@configured
def current() -> None:
    """Show the state of the database."""
    with _database() as (database, _):
        state = schema.current(database.engine)
    newest = "" if state.is_up_to_date else f" (newest: {state.newest_revision})"
    rows = [
        ("database", f"{url_without_passwords(database)} ({state.kind})"),
        ("revision", f"{state.revision or 'none'}{newest}"),
        ("openstack-placement's", state.reference_revision or "none"),
        ("usage", "kept by triggers" if state.keeps_usage else "summed at each request: the triggers are missing"),
        ("journal", "written by triggers" if state.keeps_journal else "not written"),
    ]
    show(Report(dict(rows), [PrintedTable(("what", "state"), [(whole(name), value) for name, value in rows])]))


@db.command()
@click.option("--repair", is_flag=True, help="Fix what can be fixed without guessing.")
@listed
@configured
@click.pass_context
def check(context: click.Context, *, repair: bool) -> None:
    """Verify usage, trees and links; the exit status is 1 if problems remain."""
    settings = chosen_settings()
    with readable(settings) as database, progress() as tell:
        if repair:
            _refuse_other_schemas(schema.current(database.engine))
            chosen = settings.placement
            owner = Owner(chosen.incomplete_consumer_project_id, chosen.incomplete_consumer_user_id)
            findings = schema_check.repair(database.engine, owner, tell)
        else:
            findings = schema_check.check(database.engine, tell)
    show(_report(findings, repair=repair))
    context.exit(0 if all(finding.repaired for finding in findings) else 1)


def _advice(remaining: Sequence[Finding], *, is_repaired: bool) -> Iterator[str]:
    """Yield what to do about the findings that are left."""
    grants = sorted({finding.needs for finding in remaining if finding.needs})
    for grant in grants:
        yield f"To have the triggers made: {grant}, then run 'placement db upgrade'."
    without_grant = [finding for finding in remaining if not finding.needs]
    if without_grant and not is_repaired and any(finding.is_repairable for finding in without_grant):
        yield 'Run "placement db check --repair" to repair it.'
    elif without_grant:
        yield "The remaining ones need a decision." if grants or is_repaired else "All of it needs a decision."


def _refuse_other_schemas(state: schema.SchemaState) -> None:
    """Refuse to repair what only this release's tables make right, triggers above all."""
    if state.revision is None:
        raise ConfigurationError("The database is openstack-placement's: run 'placement db upgrade' on it first.")
    if not state.is_up_to_date and not state.is_newer:
        raise ConfigurationError("The schema is older than this release: run 'placement db upgrade' on it first.")


@db.command("copy")
@click.option("--to", "target", required=True, envvar="PLACEMENT_COPY_TO", help="URL of the database to copy into.")
@listed
@configured
def copy_database(*, target: str) -> None:
    """Copy the database to an empty one of any kind, and compare them row by row.

    Stop the servers first: the copy does not contain what they write after it has begun. A URL with a password is
    better set in the variable PLACEMENT_COPY_TO, which other users cannot see.
    """
    with _database() as (database, settings):
        target_settings = replace(
            settings, database=replace(settings.database, connection=target, connection_parameters="")
        )
        with connected(target_settings, creates=True) as target_database, progress() as tell:
            copied = copying.copy(database.engine, target_database.engine, tell)
    table = PrintedTable(("table", "rows"), [(copy.table, copy.rows) for copy in copied])
    show(Report(table.records(), [table, "All rows were copied and are identical."]))


@db.command()
@configured
def release() -> None:
    """Remove this server's tables and triggers: openstack-placement gets its database back with all data."""
    with _database() as (database, _), progress() as tell:
        was_ours = schema.release(database.engine, tell)
    click.echo("The database is openstack-placement's alone." if was_ours else "There was nothing to remove.")


@contextmanager
def _database(*, creates: bool = False) -> Iterator[tuple[Database, Settings]]:
    """Yield the database that ``placement serve`` would use with the same options."""
    settings = with_own_database(chosen_settings())
    with connected(settings, creates=creates) as database:
        yield database, settings


def _report(findings: Sequence[Finding], *, repair: bool) -> Report:
    rows = [(finding.count, finding.description, "repaired" if finding.repaired else "") for finding in findings]
    examples = [f"  {finding.description}: {example}" for finding in findings for example in finding.examples]
    remaining = [finding for finding in findings if not finding.repaired]
    advice = _advice(remaining, is_repaired=repair) if findings else ["Nothing is wrong."]
    return Report(
        [asdict(finding) for finding in findings], [PrintedTable(("found", "what", "state"), rows), *examples, *advice]
    )
