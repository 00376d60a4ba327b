"""The answers of this server and of the release, compared to the byte, and what may differ, each with its reason."""

import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any
from urllib.parse import urlsplit

from tests.differential.release.clouds import Rows, random_scene, store
from tests.differential.release.questions import Dialogue
from tests.differential.requests import Request
from tests.differential.rounds import PLANNER, Comparison, Opponent, Round, changes_something
from tests.differential.sides import VARIANTS, Pair, release_pair
from tests.http_calls import Answer

SHOWN_CHARACTERS = 300
ORDER_OF_KEYS = "nothing but the order of keys"
OF_THE_BUDGET = (b'"complete":false', b"search limit was reached")
FAILURE = "a 500 is never right"

# Everything that a write may change; the ids of providers decide ties.
CONTENTS = {
    "resource_providers": "SELECT id, uuid, generation, parent_provider_id, root_provider_id FROM resource_providers",
    "inventories": "SELECT resource_provider_id, resource_class_id, total, reserved FROM inventories",
    "allocations": "SELECT resource_provider_id, resource_class_id, consumer_id, used FROM allocations",
    "consumers": "SELECT uuid, generation FROM consumers",
}

NOT_COMPARED = ("content-length", "date", "x-openstack-request-id", "last-modified", "x-placement-journal")
MASKS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (rb"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", b"req"),
        (rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", b"TIME"),
        (rb'"age_s":[-+.0-9e]+', b'"age_s":0'),
    )
)


def budget(request: Request, expected: Answer, given: Answer) -> bool:
    """One of the two reached its step budget: the other may count steps differently, and find more or less."""
    return any(
        any(sign in answer.body for sign in OF_THE_BUDGET) or "x-placement-search" in answer.headers
        for answer in (expected, given)
    )


def last_digits(request: Request, expected: Answer, given: Answer) -> bool:
    """Scores are no longer computed in fractions, so the last digits of a sum may differ."""
    documents = [_rounded(answer) for answer in (expected, given)]
    return documents[0] is not None and documents[0] == documents[1]


def one_voice_on_fair_shares(request: Request, expected: Answer, given: Answer) -> bool:
    """Gates follow from what each project is entitled to, promised amounts included, which the release ignored."""
    refusals = (b"placement.planner.unfair_claim", b"placement.unfair_allocation")
    return any(refusal in answer.body for refusal in refusals for answer in (expected, given))


def _rounded(answer: Answer) -> Any:
    """Return a document, with numbers that are no integers as texts of twelve digits; None if it is not JSON."""
    try:
        return json.loads(answer.body, parse_float=lambda digits: f"{float(digits):.12g}")
    except ValueError:
        return None


def release_fails(request: Request, expected: Answer, given: Answer) -> bool:
    """The release answers 500, which is never right."""
    return expected.status == 500 and given.status < 500


def order_of_keys(request: Request, expected: Answer, given: Answer) -> bool:
    """PostgreSQL returns rows in any order unless it is told one, and the keys of a JSON object have no order."""
    return difference(request, expected, given) == ORDER_OF_KEYS


def scores_without_room(request: Request, expected: Answer, given: Answer) -> bool:
    """What has no room scores 0; the release scored it by the sums of its tree."""
    documents = [_rounded(answer) for answer in (expected, given)]
    if request.path != f"{PLANNER}/scores" or (expected.status, given.status) != (200, 200):
        return False
    with_room = [
        [score if score["has_room"] else None for score in document.pop("scores")] + [document]
        for document in documents
    ]
    return with_room[0] == with_room[1]


def explained_details(request: Request, expected: Answer, given: Answer) -> bool:
    """Explanations say more, and how many trees were searched is a matter of the search.

    They mention held places only where a provider of a class asked for is in one, and every lone sharer, which the
    release overlooks where other providers are like it but for the trait. It has no hint that no single provider has an
    amount, which headroom says first. Of several providers that fail only one condition it shows the one in a candidate
    that it composes for this, and that again for each tree; others the first by id, each once. Near misses of planner
    requests regard counts, rules and paths, and name conditions where these are the cause.
    """
    return _are_explained_alike(expected, given, but_for=UNTOLD.get(request.path, ("request_id",)))


def largest_with_traits(request: Request, expected: Answer, given: Answer) -> bool:
    """The largest amount of an unsuffixed group of one class is that of a provider with its traits."""
    return _are_explained_alike(expected, given, but_for=("request_id", "message", "largest"))


def slots_of_pools(request: Request, expected: Answer, given: Answer) -> bool:
    """Where pools serve several slots of a request, headroom promises what the best tree has."""
    is_counted = request.path == f"{PLANNER}/headroom"
    changed = ("message", "fits", "complete", "aggregates", "mix", "shares")
    if not is_counted or not _are_explained_alike(expected, given, but_for=changed):
        return False
    before, now = (answer.document["headroom"] for answer in (expected, given))
    return all(now[name]["fits"] <= before[name]["fits"] <= now[name]["at_most"] for name in before)


def reworded(request: Request, expected: Answer, given: Answer) -> bool:
    """A refusal says in other words that nothing counts or has a share, that all are replaced, or who can be apart."""
    words = (b"counts towards fair shares", b"have no share", b"replaced all or none", b"With each in together")
    return expected.status == given.status == 400 and any(each in given.body for each in words)


def full_places(request: Request, expected: Answer, given: Answer) -> bool:
    """What somebody holds exclusively is nothing left: its place counts as full, so a tree's ties go there first."""
    documents = [_rounded(answer) for answer in (expected, given)]
    if not all(isinstance(document, dict) and "allocation_requests" in document for document in documents):
        return False
    candidates = [document.pop("allocation_requests") for document in documents]
    stocks = [row["resources"] for row in documents[0].get("provider_summaries", {}).values()]
    has_held = any(name.endswith("_LOCK") and stock["used"] for row in stocks for name, stock in row.items())
    return has_held and documents[0] == documents[1] and _sorted(candidates[0]) == _sorted(candidates[1])


def _providers(row: dict[str, Any]) -> list[str]:
    """Return the providers of an allocation request, which is a list before microversion 1.12."""
    allocations = row["allocations"]
    return (
        [*allocations] if isinstance(allocations, dict) else [part["resource_provider"]["uuid"] for part in allocations]
    )


def _sorted(rows: Sequence[Any]) -> list[str]:
    return sorted([json.dumps(row, sort_keys=True) for row in rows])


def no_more_than_requested(request: Request, expected: Answer, given: Answer) -> bool:
    """Of several candidates of a tree, none has more devices in a place than its group wants; the best is the same."""
    body = request.body
    if not isinstance(body, dict) or body.get("per_tree", 1) == 1 or '"per-subtree"' not in json.dumps(body):
        return False
    documents = [_rounded(answer) for answer in (expected, given)]
    rows = [document.get("allocation_requests") if isinstance(document, dict) else None for document in documents]
    return bool(rows[0]) and bool(rows[1]) and rows[1][0] in rows[0]


def equal_pools(request: Request, expected: Answer, given: Answer) -> bool:
    """What sharing providers alone serve comes by their trees if scores are equal, not by the tree it was found in."""
    documents = [_rounded(answer) for answer in (expected, given)]
    if not all(isinstance(document, dict) and "allocation_requests" in document for document in documents):
        return False
    summaries = documents[0].get("provider_summaries", {}) | documents[1].get("provider_summaries", {})
    sharing = {uuid for uuid, row in summaries.items() if "MISC_SHARES_VIA_AGGREGATE" in row.get("traits", ())}
    rows = [document["allocation_requests"] for document in documents]
    return len(rows[0]) == len(rows[1]) and all(
        before == now or {*_providers(before), *_providers(now)} <= sharing for before, now in zip(*rows, strict=True)
    )


def trees_to_avoid(request: Request, expected: Answer, given: Answer) -> bool:
    """Explanations leave out the trees to avoid, which the release counts; then it blames places held by others."""
    body = request.body
    if not isinstance(body, dict) or not ("avoid" in body or any("avoid" in part for part in _requests_in(body))):
        return False
    return _are_explained_alike(expected, given, but_for=("request_id", "explanation", "detail"))


def _requests_in(body: dict[str, Any]) -> list[Any]:
    members = body.get("members")
    return [member.get("request") or {} for member in members] if isinstance(members, list) else []


def terms_of_the_claim(request: Request, expected: Answer, given: Answer) -> bool:
    """What a claim avoids, prefers or explains also holds for members with a request of their own."""
    body = request.body
    if request.path != f"{PLANNER}/claims" or not isinstance(body, dict) or not isinstance(body.get("members"), list):
        return False
    has_own_request = any("request" in member for member in body["members"])
    return has_own_request and not body.keys().isdisjoint(("avoid", "profile", "explain"))


def _are_explained_alike(expected: Answer, given: Answer, *, but_for: Sequence[str]) -> bool:
    documents = [_telling(_rounded(answer), but_for) for answer in (expected, given)]
    return documents[0] is not None and documents[0] == documents[1]


def _telling(document: Any, but_for: Sequence[str]) -> Any:
    """Return a document without some keys, steps of held places that exclude nothing, and two kinds of hints."""
    if isinstance(document, list):
        hints = [one for one in document if isinstance(one, dict)]
        known = [
            one for one in hints if one.get("hint") in ("sharing_provider_shares_with_nobody", "no_single_provider")
        ]
        return [_telling(each, but_for) for each in document if each not in known]
    if not isinstance(document, dict):
        return document
    steps = document.get("steps", [])
    counts = [(step["providers"], step["trees"]) for step in steps if "providers" in step]
    if len(counts) > 1 and counts[-1] == counts[-2] and steps[-1]["condition"] == "held_exclusively":
        document = {**document, "steps": steps[:-1]}
    is_near_miss = "largest" in document
    return {
        name: bool(value) if is_near_miss and name == "providers" else _telling(value, but_for)
        for name, value in document.items()
        if name not in but_for
    }


UNTOLD = {
    f"{PLANNER}/candidates": ("near_misses", "searched", "request_id"),
    f"{PLANNER}/claims": ("near_misses", "searched", "request_id"),
    f"{PLANNER}/headroom": ("message", "request_id"),
}
"""What explanations of a route need not have in common."""

KNOWN: tuple[Callable[[Request, Answer, Answer], bool], ...] = (
    budget,
    order_of_keys,
    release_fails,
    last_digits,
    scores_without_room,
    explained_details,
    largest_with_traits,
    slots_of_pools,
    reworded,
    one_voice_on_fair_shares,
    trees_to_avoid,
    full_places,
    no_more_than_requested,
    equal_pools,
    terms_of_the_claim,
)
"""The differences that are meant to be there: the name of each is the function's, the reason its docstring."""


class BesideRelease(Comparison):
    """Compares to the byte, on a cloud that is stored."""

    def __init__(self, rows: Rows, dialogue: Dialogue) -> None:
        self._rows = rows
        self._dialogue = dialogue

    def reset(self, pair: Pair) -> None:
        """Replace both clouds."""
        pair.reset()
        for side in (pair.reference, pair.subject):
            store(side.database, self._rows)

    def differences(self, pair: Pair, request: Request, expected: Answer, given: Answer) -> Sequence[str]:
        """Return the first difference; any 500 is one."""
        text = FAILURE if given.status == 500 else difference(request, expected, given)
        return () if text is None else (text,)

    def known_difference(self, pair: Pair, request: Request, expected: Answer, given: Answer) -> str | None:
        """Return the name of the reason."""
        reasons = () if given.status == 500 else KNOWN
        return next((known.__name__ for known in reasons if known(request, expected, given)), None)

    def parts(self, request: Request, expected: Answer, given: Answer) -> bool:
        """Tell whether it was a write."""
        return changes_something(request) and difference(request, expected, given) != ORDER_OF_KEYS

    def difference_of_contents(self, pair: Pair) -> Sequence[str]:
        """Compare the tables."""
        contents = [
            {name: sorted(side.rows(query)) for name, query in CONTENTS.items()}
            for side in (pair.reference, pair.subject)
        ]
        text = _first_difference(*contents, "tables")
        return (text,) if text else ()

    def learn(self, request: Request, expected: Answer) -> None:
        """Let the dialogue go on from an answer."""
        self._dialogue.learn(request, expected)


def drawn_round(chance: Random, requests: int) -> Round:
    """Return a random cloud, and so many requests about it."""
    scene = random_scene(chance)
    dialogue = Dialogue(scene.world)
    return Round(BesideRelease(scene.rows, dialogue), [*scene.opening, *[dialogue.next] * requests])


RELEASE = Opponent("tests.differential.release", tuple(VARIANTS), release_pair, drawn_round)


def difference(request: Request, expected: Answer, given: Answer) -> str | None:
    """Return the first difference between two answers, apart from what no two answers have in common."""
    seen = [_compared(request, answer) for answer in (expected, given)]
    if seen[0] == seen[1]:
        return None
    for part in ("status", "headers"):
        if seen[0][part] != seen[1][part]:
            return f"{part}: {seen[0][part]} != {seen[1][part]}"
    return _first_difference(*[_document(each["body"]) for each in seen], "$") or ORDER_OF_KEYS


def _compared(request: Request, answer: Answer) -> dict[str, Any]:
    body = answer.body
    for pattern, replacement in MASKS:
        body = pattern.sub(replacement, body)
    headers = {name: value for name, value in answer.headers.items() if name not in NOT_COMPARED}
    if "location" in headers:
        headers["location"] = urlsplit(headers["location"]).path
    return {"status": answer.status, "headers": headers, "body": body}


def _document(body: bytes) -> Any:
    """Return the JSON of a body, that of each line of a stream, or the body itself if it is another text."""
    try:
        return json.loads(body) if body[:1] == b"[" else [json.loads(line) for line in body.splitlines()]
    except ValueError:
        return body


def _first_difference(expected: Any, given: Any, path: str) -> str | None:
    """Return where two documents differ first, whatever the order of their keys."""
    if isinstance(expected, dict) and isinstance(given, dict):
        if expected.keys() != given.keys():
            return f"{path}: keys {[*expected]} != {[*given]}"
        pairs = [(f"{path}.{key}", expected[key], given[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(given, list) and len(expected) == len(given):
        pairs = [(f"{path}[{place}]", *both) for place, both in enumerate(zip(expected, given, strict=True))]
    else:
        return None if expected == given else f"{path}: {_shown(expected)} != {_shown(given)}"
    return next((found for where, *both in pairs if (found := _first_difference(*both, where))), None)


def _shown(value: Any) -> str:
    shown = f"{len(value)} of {value!r}" if isinstance(value, list) else repr(value)
    return shown[:SHOWN_CHARACTERS]
