"""What counts as the same answer."""

import json
from typing import Any

import pytest

from tests.differential.answers import Answer, candidate_differences, differences
from tests.differential.requests import Request

HEADERS = {"content-type": "application/json", "x-openstack-request-id": "req-1"}


def candidates(*providers: str, minor: int = 39) -> dict[str, Any]:
    """Return a document in which each provider is a candidate by itself, and the root of its own tree."""
    summary: dict[str, Any] = {"resources": {"VCPU": {"capacity": 8, "used": 0}}}
    return {
        "allocation_requests": [{"allocations": {name: {"resources": {"VCPU": 1}}}} for name in providers],
        "provider_summaries": {
            name: summary | ({"root_provider_uuid": name} if minor >= 29 else {}) for name in providers
        },
    }


def query(*pairs: tuple[str, str], minor: int = 39) -> Request:
    return Request("GET", "/allocation_candidates", f"1.{minor}", pairs)


def answer(document: object, status: int = 200, **headers: str) -> Answer:
    return Answer(status, {**HEADERS, **headers}, json.dumps(document).encode())


def test_the_order_of_candidates_does_not_matter() -> None:
    assert not candidate_differences(query(), candidates("a", "b"), candidates("b", "a"))


def test_a_missing_candidate_is_told() -> None:
    assert candidate_differences(query(), candidates("a", "b"), candidates("b"))


def test_a_candidate_given_twice_is_told() -> None:
    twice = candidates("a")
    twice["allocation_requests"] *= 2
    assert candidate_differences(query(), candidates("a"), twice)


@pytest.mark.parametrize("minor", [28, 39])
def test_a_limit_may_leave_any_candidates(minor: int) -> None:
    limited = query(("limit", "2"), minor=minor)
    everything = candidates("a", "b", "c", minor=minor)
    assert not candidate_differences(limited, everything, candidates("c", "a", minor=minor))


def test_a_limit_leaves_as_many_as_it_says() -> None:
    assert candidate_differences(query(("limit", "2")), candidates("a", "b", "c"), candidates("a"))


def test_a_limit_adds_none() -> None:
    assert candidate_differences(query(("limit", "2")), candidates("a", "b", "c"), candidates("a", "d"))


def test_a_limited_answer_summarises_the_trees_it_uses_and_no_others() -> None:
    too_many = candidates("a", "b", "c")
    too_many["allocation_requests"].pop()
    assert candidate_differences(query(("limit", "2")), candidates("a", "b", "c"), too_many)


def test_before_1_29_a_limited_answer_summarises_all_that_serve_in_its_trees() -> None:
    limited, everything, roots = query(("limit", "1"), minor=24), candidates("a1", "a2", "b", minor=24), {"b": "b"}
    roots |= {"a1": "a", "a2": "a"}
    given = candidates("a1", "a2", minor=24)
    given["allocation_requests"].pop()
    assert not candidate_differences(limited, everything, given, roots)
    del given["provider_summaries"]["a2"]
    assert candidate_differences(limited, everything, given, roots)


def test_a_wrong_amount_in_a_summary_is_told() -> None:
    wrong = candidates("a")
    wrong["provider_summaries"]["a"]["resources"]["VCPU"]["used"] = 1
    assert candidate_differences(query(), candidates("a"), wrong)


def test_the_words_of_an_error_are_free_and_its_code_is_not() -> None:
    def error(code: str, detail: str) -> Answer:
        return answer({"errors": [{"status": 409, "code": code, "detail": detail, "request_id": "req-1"}]}, 409)

    request = Request("GET", "/traits", "1.39")
    assert not differences(request, error("one", "no"), error("one", "sorry"))
    assert differences(request, error("one", "no"), error("two", "no"))


@pytest.mark.parametrize("name", ["cache-control", "last-modified", "location", "openstack-api-version", "vary"])
def test_a_missing_header_is_told(name: str) -> None:
    assert differences(Request("GET", "/traits"), answer({}, **{name: "x"}), answer({}))


def test_an_answer_may_be_dated_where_the_reference_forgot_to() -> None:
    cached = {"cache-control": "no-cache"}
    dated = answer({}, **cached, **{"last-modified": "today"})
    assert not differences(Request("GET", "/traits"), answer({}, **cached), dated)
    assert differences(Request("GET", "/traits"), answer({}), answer({}, **{"last-modified": "today"}))
