"""Answers of megabytes: sent as they are written, compressed if the client accepts it, and soon released."""

import gzip
import json
from collections.abc import Iterator

import pytest

from tests.api.conftest import Api, serving
from tests.clouds import provider
from tests.stored_clouds import stored

GROUPS = 3
QUERY = "/allocation_candidates?group_policy=none&" + "&".join(f"resources{n}=VCPU:1" for n in range(GROUPS))
DEVICES = 16
HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}


@pytest.fixture
def api(sqlite_url: str) -> Iterator[Api]:
    """A host with sixteen devices: 4,096 ways to place three groups, 2 MB of JSON."""
    with serving(sqlite_url) as served:
        stored(served.app, provider("host", *[provider(f"device{number}", VCPU=8) for number in range(DEVICES)]))
        yield served


def test_a_large_answer_comes_in_pieces(api: Api):
    """So the first bytes arrive before the last candidate is written."""
    answer = api.app.test_client().get(QUERY, headers=HEADERS, buffered=False)
    pieces = list(answer.response)
    assert len(pieces) > 2
    assert pieces[0].startswith(b'{"allocation_requests":[')
    assert pieces[0].count(b'"mappings"') < DEVICES**GROUPS / 2
    assert "content-length" not in answer.headers
    assert len(json.loads(b"".join(pieces))["allocation_requests"]) == DEVICES**GROUPS


def test_who_takes_gzip_gets_a_large_answer_compressed(api: Api):
    plain, packed = (
        api.get(QUERY, headers={"accept-encoding": accepted}) for accepted in ("identity", "gzip, deflate")
    )
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert len(packed.data) < len(plain.data) / 5
    assert {answer.headers["vary"] for answer in (plain, packed)} == {"accept-encoding, openstack-api-version"}


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "gzip;q=x", "*;q=0", ";;;,,"])
def test_nobody_else_does(api: Api, accepted: str):
    answer = api.get(QUERY, headers={"accept-encoding": accepted})
    assert "content-encoding" not in answer.headers
    assert len(answer.json["allocation_requests"]) == DEVICES**GROUPS


def test_a_small_answer_is_sent_as_a_whole(api: Api):
    answer = api.get(QUERY + "&limit=1", headers={"accept-encoding": "gzip"})
    assert int(answer.headers["content-length"]) == len(answer.data)
    assert "content-encoding" not in answer.headers
