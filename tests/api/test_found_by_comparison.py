"""Requests on which this server and the reference once differed, found by tests/differential."""

import uuid

from tests.api.conftest import Api


def test_a_tree_that_does_not_exist_has_no_candidates(api: Api) -> None:
    nowhere = str(uuid.uuid4())
    for query in (f"resources=VCPU:1&in_tree={nowhere}", f"resources1=VCPU:1&in_tree1={nowhere}"):
        answer = api.get(f"/allocation_candidates?{query}")
        assert (answer.status_code, answer.json) == (200, {"allocation_requests": [], "provider_summaries": {}})
