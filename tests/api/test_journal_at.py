"""GET /planner/v1/journal/at shows a provider as it was, in the form in which it was shown then."""

import random
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from tests.api.conftest import Api
from tests.api.test_mirror import change
from tests.claims import make_provider, new_uuid

PATH = "/planner/v1/journal"


def state(api: Api, provider: str) -> dict[str, Any] | None:
    """Return what the plain API shows of a provider now."""
    path = f"/resource_providers/{provider}"
    if api.get(path).status_code == 404:
        return None
    held = api.get(f"{path}/allocations").get_json()["allocations"]
    inventories = api.get(f"{path}/inventories").get_json()["inventories"]
    return {
        "inventories": inventories,
        "holders": {consumer: one["resources"] for consumer, one in held.items()},
        "traits": sorted(api.get(f"{path}/traits").get_json()["traits"]),
        "aggregates": sorted(api.get(f"{path}/aggregates").get_json()["aggregates"]),
    }


def newest(api: Api) -> datetime:
    """Return a moment just after the newest row: times have at least millisecond precision."""
    (row,) = api.get(f"{PATH}?limit=1").get_json()["entries"]
    return datetime.fromisoformat(row["time"]).replace(tzinfo=None) + timedelta(milliseconds=1)


@pytest.mark.parametrize("seed", range(2))
def test_every_earlier_state_is_told_as_it_was(api: Api, seed: int) -> None:
    choice, consumers = random.Random(seed), list[str]()
    providers = [make_provider(api, VCPU=8) for _ in range(3)]
    watched = list(providers)
    moments = []
    for _ in range(25):
        change(api, choice, providers, consumers)
        moments.append((newest(api), {provider: state(api, provider) for provider in watched}))
    checked = 0
    for (moment, states), (later, _) in pairwise(moments):
        if later <= moment + timedelta(milliseconds=5):
            continue  # the next change came at the same moment
        checked += 1
        for provider, expected in states.items():
            answer = api.get(f"{PATH}/at?provider={provider}&time={moment.isoformat()}Z")
            if expected is None:
                assert answer.status_code == 404
            else:
                told = answer.get_json()
                assert {name: told[name] for name in expected} == expected
    assert checked > 3


def test_what_cannot_be_told_is_refused(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    assert api.get(f"{PATH}/at?provider={provider}&time=2001-01-01").status_code == 410
    assert api.get(f"{PATH}/at?provider={new_uuid()}&time=2999-01-01").status_code == 404
    assert api.get(f"{PATH}/at?provider={provider}").status_code == 400
    assert api.get(f"{PATH}/at?provider={provider}&time=soon").status_code == 400
    reader = {"x-auth-token": "somebody:mine", "x-roles": "reader"}
    assert api.get(f"{PATH}/at?provider={provider}&time=2999-01-01", headers=reader).status_code == 403
