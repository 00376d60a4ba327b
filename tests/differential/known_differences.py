"""The answers of this server and of the reference, compared by meaning, and deliberate differences by their content.

A function's name is the difference's name, its docstring the reason. It returns true only if everything except that
difference agrees.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from placement.domain.quantities import LARGEST_CAPACITY
from tests.differential.answers import candidate_differences, canonical, differences, error_form
from tests.differential.requests import Request
from tests.differential.sides import Pair, Side
from tests.http_calls import Answer

ALL_DEFECTS = "amounts,anchors,homes"
GROUP_KEYS = ("resources", "required", "member_of", "in_tree")
FIRST_WITH_MAPPINGS = 34
FILTERED = ("/allocation_candidates", "/resource_providers")


def compared(pair: Pair, request: Request, expected: Answer, given: Answer) -> Sequence[str]:
    """Return how the answers differ in what clients of the reference rely on.

    With a limit, the server may choose which candidates to return, but they must be candidates.
    """
    if request.is_candidates and expected.status == 200 and request.values("limit"):
        expected = pair.reference.ask(request.without("limit"))
        return differences(request, expected, given, pair.reference.roots())
    return differences(request, expected, given)


def known_difference(pair: Pair, request: Request, expected: Answer, given: Answer) -> str | None:
    """Return the name of the deliberate difference that two answers show, or None."""
    case = Case(request, expected, given, pair.reference, pair.subject.name)
    return next((known.__name__ for known in KNOWN if known(case)), None)


@dataclass(frozen=True, slots=True)
class Case:
    """A request whose two answers differ; the reference can be sent further requests."""

    request: Request
    expected: Answer
    given: Answer
    reference: Side
    subject: str
    """The name of the other side: the kind of its database."""


def reference_fails(case: Case) -> bool:
    """The reference answers 500, which is never right."""
    if case.expected.status < 500 or case.given.status >= 500:
        return False
    if _has_huge_integer(case.request) and case.given.status != 400:
        return False
    if case.request.is_candidates and case.given.status == 200:
        return _agrees_when_mended(case, ALL_DEFECTS)
    return case.given.status < 400 or not error_form(case.request, case.given)


def unauthenticated_document(case: Case) -> bool:
    """The reference's noauth2 answers 401 without a list of errors, which crashes the openstack command."""
    return case.expected.status == case.given.status == 401 and not error_form(case.request, case.given)


def unknown_name_after_nothing_found(case: Case) -> bool:
    """An unknown class or trait is 400 here; the reference answers "none" if an earlier filter or group left none."""
    if (case.expected.status, case.given.status) != (200, 400) or case.request.path not in FILTERED:
        return False
    if any(case.expected.document.values()) or error_form(case.request, case.given):
        return False
    classes, traits = _names(case.request)
    known = (case.reference.names("resource_classes"), case.reference.names("traits"))
    return bool(classes - known[0] or traits - known[1])


def amounts_leak(case: Case) -> bool:
    """When the unsuffixed and a suffixed group ask for one class, the reference adds amounts of other candidates."""
    return _is_about_groups(case) and _agrees_when_mended(case, "amounts")


def one_anchor(case: Case) -> bool:
    """The reference combines a sharing provider for the whole unsuffixed group with other groups in one tree only.

    It treats the candidates of that group as equal although they belong to different trees.
    """
    return _is_about_groups(case) and _agrees_when_mended(case, "anchors")


def amounts_leak_and_one_anchor(case: Case) -> bool:
    """Both of the above occur in one answer."""
    return _is_about_groups(case) and _agrees_when_mended(case, "amounts,anchors")


def told_apart_by_nothing(case: Case) -> bool:
    """Candidates with equal amounts that serve groups otherwise look the same before 1.34, which has no mappings.

    Where a provider shares, the reference lists some of them once.
    """
    if not _is_about_groups(case) or case.request.minor >= FIRST_WITH_MAPPINGS or case.request.values("limit"):
        return False
    expected, given = [{**answer.document, "allocation_requests": []} for answer in (case.expected, case.given)]
    candidates = [{*map(canonical, answer.document["allocation_requests"])} for answer in (case.expected, case.given)]
    return candidates[0] == candidates[1] and not candidate_differences(case.request, expected, given)


def bounded_capacity(case: Case) -> bool:
    """A capacity beyond 2^45, by an enormous allocation ratio, counts as 2^45: sums of others overflow no column."""
    if not case.request.is_candidates or (case.expected.status, case.given.status) != (200, 200):
        return False
    document = case.expected.document
    for summary in document["provider_summaries"].values():
        for stock in summary["resources"].values():
            stock["capacity"] = min(stock["capacity"], LARGEST_CAPACITY)
    return document != case.expected.document and not candidate_differences(case.request, document, case.given.document)


def _is_about_groups(case: Case) -> bool:
    """Return whether candidates were found for more than one group, one of which has no suffix."""
    both_found = case.request.is_candidates and (case.expected.status, case.given.status) == (200, 200)
    return both_found and len(_suffixes(case.request)) > 1 and "" in _suffixes(case.request)


def _agrees_when_mended(case: Case, defects: str) -> bool:
    mended = dataclasses.replace(case.request.without("limit"), headers={**case.request.headers, "x-mend": defects})
    everything = case.reference.ask(mended)
    return everything.status == 200 and not candidate_differences(
        case.request, everything.document, case.given.document
    )


def _suffixes(request: Request) -> set[str]:
    return {key.removeprefix(name) for key, _ in request.query for name in GROUP_KEYS if key.startswith(name)}


def error_page(case: Case) -> bool:
    """Errors are JSON for all who accept JSON at all, or neither JSON nor text; the reference weighs by q."""
    accepted = case.request.all_headers().get("accept", "*/*")
    if case.expected.status < 400 or case.expected.status != case.given.status or "json" in _type_of(case.expected):
        return False
    wants_text_only = "text/" in accepted and not any(name in accepted for name in ("json", "*/*", "application/*"))
    return not wants_text_only and "json" in _type_of(case.given) and not error_form(case.request, case.given)


def _type_of(answer: Answer) -> str:
    return answer.headers.get("content-type", "")


def huge_integer(case: Case) -> bool:
    """An integer that fits no column is malformed, 400; the reference refuses for other reasons, or finds nothing.

    When it adds a single inventory, it ignores the provider's generation.
    """
    if case.given.status != 400 or not _has_huge_integer(case.request):
        return False
    if case.request.method == "POST" and case.request.path.endswith("/inventories"):
        return True
    return case.expected.status >= 400 or not any((case.expected.document or {}).values())


def _has_huge_integer(request: Request) -> bool:
    amounts = [item.rpartition(":")[2] for key, value in request.query for item in value.split(",") if ":" in item]
    numbers = [int(amount) for amount in amounts if amount.isascii() and amount.isdecimal()]
    numbers += [leaf for leaf in _leaves(request.body) if isinstance(leaf, int | float)]
    return any(abs(number) >= 2**63 for number in numbers)


def malformed_class(case: Case) -> bool:
    """A name that no class can have is malformed in any body with several inventories.

    The reference does not check for such names: it may refuse the provider or its generation first.
    """
    if case.given.status != 400 or case.expected.status not in (400, 409):
        return False
    if case.expected.status == 409 and not _is_of_generations(case.expected):
        return False
    return any(not re.fullmatch("[A-Z0-9_]+", name) for name in _classes_of_inventories(case.request))


def _classes_of_inventories(request: Request) -> set[str]:
    """Return the class names in the body of a reshape, or of all inventories of a provider."""
    if request.path == "/reshaper":
        of_providers = _inside(request.body, "inventories").values()
        return {name for one in of_providers for name in _inside(one, "inventories")}
    is_of_one = request.method == "PUT" and request.path.endswith("/inventories")
    return set(_inside(request.body, "inventories")) if is_of_one else set()


def _is_of_generations(answer: Answer) -> bool:
    """Tell whether an error is a conflict of generations; before microversion 1.23 errors have no codes."""
    return any("generation conflict" in error["detail"] for error in (answer.document or {}).get("errors", []))


def _inside(document: Any, key: str) -> dict[str, Any]:
    """Return the mapping under a key, or an empty one."""
    inner = document.get(key) if isinstance(document, dict) else None
    return inner if isinstance(inner, dict) else {}


def nul_character(case: Case) -> bool:
    """A NUL is malformed, 400, and no path has one, 404: PostgreSQL cannot store it, the reference's SQLite can."""
    if "\0" in unquote(case.request.path):
        return case.given.status in (400, 404)
    leaves = (*_leaves(case.request.body), *(value for _, value in case.request.query))
    return case.given.status == 400 and any(isinstance(leaf, str) and "\0" in leaf for leaf in leaves)


def _leaves(document: Any) -> Iterator[Any]:
    """Yield the keys of a document and its scalar values."""
    if isinstance(document, dict):
        for key, item in document.items():
            yield key
            yield from _leaves(item)
    elif isinstance(document, list):
        for item in document:
            yield from _leaves(item)
    else:
        yield document


def name_by_collation(case: Case) -> bool:
    """MariaDB compares names by its collation, for the reference, too: case and spaces at the end do not count."""
    if case.subject != "mariadb" or case.request.path != "/resource_providers" or case.given.status != 200:
        return False
    names = {_folded(provider["name"]): provider["name"] for provider in case.given.document["resource_providers"]}
    query = [(key, names.get(_folded(value), value) if key == "name" else value) for key, value in case.request.query]
    spelled = dataclasses.replace(case.request, query=tuple(query))
    return spelled != case.request and not differences(spelled, case.reference.ask(spelled), case.given)


def _folded(name: str) -> str:
    return name.rstrip(" ").casefold()


KNOWN: tuple[Callable[[Case], bool], ...] = (
    reference_fails,
    unauthenticated_document,
    unknown_name_after_nothing_found,
    amounts_leak,
    one_anchor,
    amounts_leak_and_one_anchor,
    told_apart_by_nothing,
    bounded_capacity,
    error_page,
    huge_integer,
    malformed_class,
    nul_character,
    name_by_collation,
)


def _names(request: Request) -> tuple[set[str], set[str]]:
    """Return the classes and traits in a query."""
    classes: set[str] = set()
    traits: set[str] = set()
    for key, value in request.query:
        if key.startswith("resources"):
            classes |= {item.partition(":")[0] for item in value.split(",")}
        elif key.startswith(("required", "root_required")):
            # "in:" precedes the whole list; further on it is part of a name.
            traits |= {item.strip().lstrip("!") for item in value.removeprefix("in:").split(",")}
    return classes, traits
