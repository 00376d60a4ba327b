"""Two claims for the last unit of a host, on the reference, in its own environment: prints the answers of each order.

    OS_PLACEMENT_DATABASE__CONNECTION=... python reference_race.py DATABASE

The database, in libpq's form, is empty. Prints one line of JSON for each order of the statements, and stops at the
first in which both claims won.
"""

import json
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Last, so that `placement` is the reference's.
sys.path.append(str(Path(__file__).parents[2]))

import psycopg2
from oslo_config import cfg
from placement.db.sqlalchemy.models import BASE
from webob import Request

from placement import conf, db_api, deploy
from tests.interleavings.lock_waits import PostgreSQLWaits
from tests.interleavings.orders import every_order
from tests.interleavings.scheduler import Choose, Scheduler
from tests.interleavings.statements import neighbours

HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.28", "content-type": "application/json"}


def loaded() -> Any:
    """Return the reference's WSGI application, configured by environment variables."""
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    config([], default_config_files=[])
    db_api.configure(config)
    return deploy.loadapp(config)


def send(app: Any, method: str, path: str, body: object) -> int:
    """Send a request and return the status."""
    request = Request.blank(path, method=method, headers=HEADERS, json=body)
    return int(request.get_response(app).status_int)


def race(app: Any, scheduler: Scheduler, choose: Choose) -> list[int]:
    """Let two consumers claim the last unit of a new host; return the statuses."""
    host = str(uuid.uuid4())
    assert send(app, "POST", "/resource_providers", {"name": host, "uuid": host}) == 200
    inventories = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1}}}
    assert send(app, "PUT", f"/resource_providers/{host}/inventories", inventories) == 200
    claim = {
        "allocations": {host: {"resources": {"VCPU": 1}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
    }

    def call() -> Callable[[], int]:
        consumer = str(uuid.uuid4())
        return lambda: send(app, "PUT", f"/allocations/{consumer}", claim)

    return scheduler.run([call(), call()], choose)[0]


def main() -> None:
    """Try every order until both claims win."""
    app = loaded()
    admin = psycopg2.connect(sys.argv[1])
    admin.autocommit = True

    def execute(query: str) -> list[Any]:
        with admin.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    scheduler = Scheduler(PostgreSQLWaits(execute), neighbours(BASE.metadata))
    scheduler.watch(db_api.get_placement_engine())
    for statuses in every_order(lambda choose: race(app, scheduler, choose)):
        sys.stdout.write(json.dumps(statuses) + "\n")
        if statuses == [204, 204]:
            break


if __name__ == "__main__":
    main()
