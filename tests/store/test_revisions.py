"""The revisions that are read from the files are those that Alembic finds."""

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import text

from placement.settings import DatabaseSettings
from placement.store.lifecycle.opening import open_database
from placement.store.lifecycle.schema import known_revisions, migrations
from placement.store.tables import VERSION_TABLE


def test_they_are_those_that_alembic_finds():
    config = Config()
    config.set_main_option("script_location", str(migrations()))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    newest, older = known_revisions()
    assert newest == scripts.get_current_head()
    assert {newest, *older} == {script.revision for script in scripts.walk_revisions()}


@pytest.mark.parametrize(
    ("revision", "warns"), [(None, True), (min(known_revisions()[1]), True), ("of a later release", False)]
)
def test_a_server_warns_at_start_of_a_schema_that_it_is_too_new_for(
    sqlite_url: str, caplog: pytest.LogCaptureFixture, revision: str | None, *, warns: bool
):
    settings = DatabaseSettings(connection=sqlite_url)
    with open_database(settings).engine.begin() as connection:
        connection.execute(text(f"DELETE FROM {VERSION_TABLE}"))
        if revision is not None:
            connection.execute(text(f"INSERT INTO {VERSION_TABLE} VALUES (:revision)"), {"revision": revision})
    caplog.clear()
    open_database(settings)
    assert ("the server is not ready" in caplog.text and "run 'placement db upgrade'" in caplog.text) is warns
