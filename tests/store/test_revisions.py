"""The revisions that are read from the files are those that Alembic finds."""

import subprocess
import sys

from alembic.config import Config
from alembic.script import ScriptDirectory

from placement.store.lifecycle.revisions import known_revisions, migrations

SERVED = """
import sys
from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
create_app(Settings(database=DatabaseSettings(connection=sys.argv[1], sync_on_startup=True), auth_strategy="noauth2"))
print("alembic" in sys.modules)
"""


def test_they_are_those_that_alembic_finds():
    config = Config()
    config.set_main_option("script_location", str(migrations()))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    newest, older = known_revisions()
    assert newest == scripts.get_current_head()
    assert {newest, *older} == {script.revision for script in scripts.walk_revisions()}


def test_a_server_of_an_up_to_date_database_does_without_alembic(sqlite_url: str):
    done = subprocess.run([sys.executable, "-c", SERVED, sqlite_url], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
