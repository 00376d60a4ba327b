"""Hosts that tests write as rows equal those that the script creates by requests."""

import json
import re

from tests.api.conftest import Api
from tests.claims import ask
from tests.planner_hosts import names_of, register, script

PARTS = ("", "/inventories", "/traits", "/aggregates", "/usages")


def told(api: Api, host: str) -> list[str]:
    """Return everything the API shows of a host's providers, as if it were called "host", with names for uuids."""
    names = {uuid: name for uuid, name in names_of(api).items() if name.split("-")[0] == host}
    answers = [ask(api, "GET", f"/resource_providers/{uuid}{part}") for uuid in names for part in PARTS]
    texts = [json.dumps(answer, sort_keys=True) for answer in answers]
    for uuid, name in names.items():
        texts = [text.replace(uuid, name) for text in texts]
    return sorted(re.sub(rf"(?<=[\"/]){host}\b", "host", text) for text in texts)


def test_a_host_written_as_rows_is_what_the_script_makes(api: Api) -> None:
    script.register(lambda method, path, body: ask(api, method, path, body=body), "requests")
    register(api, "rows")
    assert len(told(api, "rows")) == 23 * len(PARTS)
    assert told(api, "rows") == told(api, "requests")
