"""Where this server means to answer otherwise than the reference, each difference recognised by what it is.

A function's name is the difference's name, its docstring the reason. It says yes only to a case in which everything
but that difference agrees.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tests.differential.answers import Answer, candidate_differences, differences, error_form
from tests.differential.requests import Request
from tests.differential.sides import ReferenceSide

HIDDEN_CONSUMER = "hidden_consumer"
"""The reference leaves a consumer without allocations behind when a write to a new one is refused or empty, and the
next write with generation null gets 409. Rounds delete such consumers from its database after each write."""

SUFFIXED_KEYS = ("resources", "required", "member_of", "in_tree")


@dataclass(frozen=True, slots=True)
class Case:
    """A request whose two answers differ; the reference can be asked more."""

    request: Request
    expected: Answer
    given: Answer
    reference: ReferenceSide
    is_self_check: bool = False
    """Whether the other side is a second reference."""


def recognised(case: Case) -> str | None:
    """Return the name of the known difference a case shows, None if it is news."""
    return next((known.__name__ for known in KNOWN if known(case)), None)


def reference_fails(case: Case) -> bool:
    """The reference answers 500, which is right for no request."""
    if case.expected.status < 500 or case.given.status >= 500:
        return False
    return case.given.status < 400 or not error_form(case.request, case.given)


def unauthenticated_document(case: Case) -> bool:
    """The reference's noauth2 answers 401 without a list of errors, which crashes the openstack command."""
    both = case.expected.status == case.given.status == 401
    return both and (case.is_self_check or not error_form(case.request, case.given))


def unknown_name_in_a_later_group(case: Case) -> bool:
    """An unknown class or trait is 400 here; the reference answers an empty 200 if it gave up on an earlier group."""
    if not case.request.is_candidates or (case.expected.status, case.given.status) != (200, 400):
        return False
    if case.expected.document["allocation_requests"] or error_form(case.request, case.given):
        return False
    classes, traits = _names(case.request)
    known = (case.reference.names("resource_classes"), case.reference.names("traits"))
    return bool(classes - known[0] or traits - known[1])


def amounts_leak(case: Case) -> bool:
    """When the unsuffixed and a suffixed group ask for one class, the reference adds amounts of other candidates.

    It copies what it merges only with group_policy=none; so it is asked with that, and isolation applied here.
    """
    request = case.request
    if not request.is_candidates or (case.expected.status, case.given.status) != (200, 200):
        return False
    if request.values("group_policy")[:1] == ["none"] or not _classes_in_both_kinds_of_group(request):
        return False
    return case.is_self_check or not candidate_differences(request, _without_leak(case), case.given.document)


def undated_empty_inventories(case: Case) -> bool:
    """The reference leaves last-modified away where there is no inventory; elsewhere an empty answer is dated now."""
    document = case.expected.document
    if not (isinstance(document, dict) and document.get("inventories") == {} and case.expected.status == 200):
        return False
    dated = dataclasses.replace(case.expected, headers={**case.expected.headers, "last-modified": "now"})
    return not differences(case.request, dated, case.given)


def error_nobody_asked_for(case: Case) -> bool:
    """Who accepts neither JSON nor HTML nor plain text gets errors as JSON here, as plain text from the reference."""
    accepted = case.request.all_headers().get("accept", "*/*")
    if case.expected.status < 400 or case.expected.status != case.given.status:
        return False
    return not any(name in accepted for name in ("json", "text/", "*/*")) and not error_form(case.request, case.given)


def huge_integer(case: Case) -> bool:
    """An integer that no column can hold is malformed, 400; the reference finds other reasons to refuse it."""
    both_refuse = case.given.status == 400 and case.expected.status >= 400
    return both_refuse and any(abs(number) >= 2**63 for number in _integers(case.request.body))


def _integers(value: Any) -> Iterable[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _integers(item)


KNOWN: tuple[Callable[[Case], bool], ...] = (
    reference_fails,
    unauthenticated_document,
    unknown_name_in_a_later_group,
    amounts_leak,
    undated_empty_inventories,
    error_nobody_asked_for,
    huge_integer,
)


def _names(request: Request) -> tuple[set[str], set[str]]:
    """Return the classes and traits a query names."""
    classes: set[str] = set()
    traits: set[str] = set()
    for key, value in request.query:
        if key.startswith("resources"):
            classes |= {item.partition(":")[0].strip() for item in value.split(",")}
        elif key.startswith(("required", "root_required")):
            traits |= {item.strip().removeprefix("in:").lstrip("!") for item in value.split(",")}
    return classes, traits


def _classes_in_both_kinds_of_group(request: Request) -> bool:
    """Say whether the unsuffixed group and a suffixed one ask for the same class."""
    plain = _names(dataclasses.replace(request, query=tuple(("resources", v) for v in request.values("resources"))))[0]
    others = tuple((key, value) for key, value in request.query if key.startswith("resources") and key != "resources")
    return bool(plain & _names(dataclasses.replace(request, query=others))[0])


def _without_leak(case: Case) -> Any:
    """Return what the reference would answer to the query, limit aside, if it copied what it merges."""
    request = case.request.without("limit", "group_policy")
    # Mappings tell which groups share a provider; the version that has them differs in form, and by nested providers.
    asked = dataclasses.replace(
        request, version=f"1.{max(request.minor, 34)}", query=(*request.query, ("group_policy", "none"))
    )
    document = case.reference.ask(asked).document
    found = document["allocation_requests"]
    if "isolate" in case.request.values("group_policy"):
        found = [row for row in found if _is_isolated(row)]
    if request.minor < 29:
        found = [row for row in found if _is_flat(row, document["provider_summaries"])]
    return _in_form_of(request, found, document["provider_summaries"])


def _is_isolated(row: Any) -> bool:
    owners = [provider for suffix, providers in row["mappings"].items() if suffix for provider in providers]
    return len(owners) == len(set(owners))


def _is_flat(row: Any, summaries: Any) -> bool:
    roots = [summaries[provider]["root_provider_uuid"] for provider in row["allocations"]]
    return len(roots) == len(set(roots))


def _in_form_of(request: Request, found: Iterable[Any], summaries: Any) -> dict[str, Any]:
    """Return a 1.34 answer's rows in the form of an older microversion."""
    rows = [dict(row) for row in found]
    used = {provider for row in rows for provider in row["allocations"]}
    trees = {summaries[provider]["root_provider_uuid"] for provider in used}
    kept = {
        key: dict(row)
        for key, row in summaries.items()
        if (row["root_provider_uuid"] in trees if request.minor >= 29 else key in used)
    }
    for row in rows:
        if request.minor < 34:
            del row["mappings"]
    for row in kept.values():
        if request.minor < 29:
            del row["parent_provider_uuid"], row["root_provider_uuid"]
        if request.minor < 27:
            row["resources"] = {name: row["resources"][name] for name in row["resources"] if name in _names(request)[0]}
    return {"allocation_requests": rows, "provider_summaries": kept}
