"""The reference, openstack-placement, in a separate environment.

Both packages are `import placement`, so they never share an environment. REFERENCE_PYTHON names the python of an
existing one; without it, one is created once below .tox.
"""

import functools
import os
import subprocess
from pathlib import Path

from tests import servers
from tests.environments import kept_environment

VERSION = "16.0.0"
REQUIREMENTS = (f"openstack-placement=={VERSION}", "gunicorn", "psycopg2-binary", "pymysql")


@functools.cache
def installation() -> servers.Installation:
    """Return the reference's environment, creating it if necessary."""
    named = os.environ.get("REFERENCE_PYTHON")
    python = Path(named) if named else kept_environment(f"reference-{VERSION}", *REQUIREMENTS)
    return servers.Installation(python, servers.plain_environment("PYTHONPATH", "PYTHONHOME"))


def configuration(database_url: str) -> servers.Sections:
    """Return a configuration of the reference for tests: durable writes to SQLite would only cost time."""
    # The driver is named because the reference fails with psycopg 3, SQLAlchemy 2.1's default: it reads lastrowid.
    sections = servers.default_sections(database_url.replace("postgresql://", "postgresql+psycopg2://"))
    sections["placement_database"]["sqlite_synchronous"] = "False"
    return sections


@functools.cache
def package_directory() -> Path:
    """Return the directory of the reference's `placement` package."""
    script = "import placement, sys; sys.stdout.write(placement.__path__[0])"
    command = [str(installation().python), "-c", script]
    done = subprocess.run(
        command, cwd="/", env=dict(installation().variables), capture_output=True, text=True, check=True
    )
    return Path(done.stdout)
