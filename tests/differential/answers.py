"""The part of an answer on which two servers must agree."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tests.differential.requests import Request
from tests.http_calls import Answer

PRESENT_OR_NOT = ("cache-control", "last-modified")
FORGOTTEN_BY_THE_REFERENCE = ("vary", "allow")  # on some errors
ERROR_FIELDS = ("status", "title", "code", "max_version", "min_version")


Roots = Mapping[str, str]
"""The root of each provider's tree, by uuid."""


def differences(request: Request, expected: Answer, given: Answer, roots: Roots | None = None) -> list[str]:
    """Return how an answer differs from the reference's; ``roots`` identifies trees where the answer does not."""
    found = _compared("status", expected.status, given.status)
    if found:
        return found
    found += _header_differences(request, expected, given)
    if expected.status >= 400:
        return found + _compared("error", _error(expected), _error(given)) + error_form(request, given)
    if request.is_candidates:
        return found + candidate_differences(request, expected.document, given.document, roots)
    return found + _compared("body", canonical(expected.document), canonical(given.document))


def candidate_differences(request: Request, everything: Any, given: Any, roots: Roots | None = None) -> list[str]:
    """Compare candidates with all that exist: the same set, or with ``limit`` that many of them."""
    limit = int(request.values("limit")[0]) if request.values("limit") else None
    known = Counter(map(canonical, everything["allocation_requests"]))
    found = Counter(map(canonical, given["allocation_requests"]))
    if limit is None or limit >= known.total():
        wrong = _compared("candidates", known, found)
    else:
        wrong = _compared("number of candidates", limit, found.total())
        wrong += [f"not a candidate: {text}" for text in found - known]
    return wrong or _summary_differences(request, everything, given, roots)


def canonical(value: Any) -> str:
    """Return a text that is equal for documents that differ only in the order of lists and keys, or in 2 and 2.0."""
    return json.dumps(_ordered(value), sort_keys=True)


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((_ordered(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _compared(what: str, expected: Any, given: Any) -> list[str]:
    if expected == given:
        return []
    if isinstance(expected, Counter):
        missing = [f"missing of {what}: {text}" for text in expected - given]
        return missing + [f"too much of {what}: {text}" for text in given - expected]
    return [f"{what}: expected {expected}", f"{what}: got      {given}"]


def _header_differences(request: Request, expected: Answer, given: Answer) -> list[str]:
    wanted, found = _headers(expected), _headers(given)
    if request.method == "HEAD":
        found["content-type"] = wanted["content-type"]  # when there is no body
    for name in FORGOTTEN_BY_THE_REFERENCE:
        if name not in expected.headers:
            found[name] = wanted[name]
    if wanted["cache-control"] and not wanted["last-modified"]:
        found["last-modified"] = False  # some of the reference's cacheable answers have no date
    wrong = _compared("headers", wanted, found)
    if not given.headers.get("x-openstack-request-id", "").startswith("req-"):
        wrong.append("no x-openstack-request-id")
    return wrong


def _headers(answer: Answer) -> dict[str, Any]:
    """Return the headers that must agree: dates and request ids do not, hosts in locations cannot."""
    headers = answer.headers
    location = headers.get("location")
    return {
        "openstack-api-version": headers.get("openstack-api-version"),
        "content-type": headers.get("content-type", "").partition(";")[0],
        "location": location and urlsplit(location).path,
        "allow": sorted(headers.get("allow", "").replace(" ", "").split(",")),
        "vary": headers.get("vary", "").lower(),
        **{name: name in headers for name in PRESENT_OR_NOT},
    }


def _error(answer: Answer) -> Any:
    try:
        (error,) = answer.document["errors"]
    except (TypeError, KeyError, ValueError):
        return "no error document"
    return {name: error[name] for name in ERROR_FIELDS if name in error}


def error_form(request: Request, given: Answer) -> list[str]:
    """Return what is wrong with a JSON error document for clients that read it."""
    if request.method == "HEAD" or not given.headers.get("content-type", "").startswith("application/json"):
        return []
    document = given.document
    errors = document.get("errors") if isinstance(document, dict) else None
    if not errors or not isinstance(errors[0].get("detail"), str):
        return [f"not an error document: {given.body[:300]!r}"]
    if errors[0].get("request_id") != given.headers.get("x-openstack-request-id"):
        return ["the error's request_id is not the header's"]
    return []


def _summary_differences(request: Request, everything: Any, given: Any, roots: Roots | None) -> list[str]:
    """Compare the summaries with those of all candidates, restricted to the trees of the given candidates."""
    summaries, found = everything["provider_summaries"], given["provider_summaries"]
    used = _used_providers(given)
    limited = len(given["allocation_requests"]) < len(everything["allocation_requests"])
    if not limited:
        return _compared("summaries", _rows(summaries), _rows(found))
    if request.minor >= 29:
        roots = {key: row["root_provider_uuid"] for key, row in summaries.items()}
    if roots is not None:
        trees = {roots[provider] for provider in used}
        wanted = {key: row for key, row in summaries.items() if roots[key] in trees}
        return _compared("summaries", _rows(wanted), _rows(found))
    wrong = [f"no summary of {provider}" for provider in used - set(found)]
    return wrong + _compared("summaries", _rows({key: summaries.get(key) for key in found}), _rows(found))


def _rows(summaries: Any) -> "Counter[str]":
    return Counter(canonical([key, row]) for key, row in summaries.items())


def _used_providers(document: Any) -> set[str]:
    used: set[str] = set()
    for request in document["allocation_requests"]:
        parts = request["allocations"]
        used |= {part["resource_provider"]["uuid"] for part in parts} if isinstance(parts, list) else set(parts)
    return used
