"""Plays rounds on both servers and compares the answers to the byte."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import urlsplit

from tests.differential.answers import Answer
from tests.differential.release.clouds import Rows, random_scene
from tests.differential.release.questions import Dialogue, changes_something
from tests.differential.release.sides import contents, reset
from tests.differential.requests import Request
from tests.differential.sides import Pair

SHOWN_CHARACTERS = 300
ORDER_OF_KEYS = "nothing but the order of keys"
OF_THE_BUDGET = (b'"complete":false', b"search limit was reached")
FAILURE = "a 500 is never right"

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


def searched(request: Request, expected: Answer, given: Answer) -> bool:
    """How many trees were searched is a matter of the search; which candidates are the best is not."""
    documents = [_rounded(answer) for answer in (expected, given)]
    return all(isinstance(each, dict) and each.pop("searched", None) is not None for each in documents) and (
        documents[0] == documents[1]
    )


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


def near_misses(request: Request, expected: Answer, given: Answer) -> bool:
    """Near misses of planner requests regard counts, rules and paths, and name conditions where these are the cause."""
    is_planned = request.path in ("/planner/v1/candidates", "/planner/v1/claims")
    return is_planned and _are_explained_alike(expected, given, but_for=("near_misses", "searched", "request_id"))


def scores_without_room(request: Request, expected: Answer, given: Answer) -> bool:
    """What has no room scores 0; the release scored it by the sums of its tree."""
    documents = [_rounded(answer) for answer in (expected, given)]
    if request.path != "/planner/v1/scores" or (expected.status, given.status) != (200, 200):
        return False
    with_room = [
        [score if score["has_room"] else None for score in document.pop("scores")] + [document]
        for document in documents
    ]
    return with_room[0] == with_room[1]


def explained_details(request: Request, expected: Answer, given: Answer) -> bool:
    """Explanations mention held places only where a provider of a class asked for is in one, and every lone sharer.

    The release overlooks a lone sharer where other providers are like it but for the trait. It has no hint that no
    single provider has an amount. Of several providers that fail only one condition it shows the one in a candidate
    that it composes for this, others the first by id.
    """
    return _are_explained_alike(expected, given, but_for=("request_id",))


def largest_with_traits(request: Request, expected: Answer, given: Answer) -> bool:
    """The largest amount of an unsuffixed group of one class is that of a provider with its traits."""
    return _are_explained_alike(expected, given, but_for=("request_id", "message", "largest"))


def single_providers(request: Request, expected: Answer, given: Answer) -> bool:
    """Headroom says first what no single provider has."""
    is_counted = request.path.partition("?")[0] == "/planner/v1/headroom"
    return is_counted and _are_explained_alike(expected, given, but_for=("message",))


def slots_of_pools(request: Request, expected: Answer, given: Answer) -> bool:
    """Where pools serve several slots of a request, headroom promises what the best tree has."""
    is_counted = request.path.partition("?")[0] == "/planner/v1/headroom"
    changed = ("message", "fits", "complete", "aggregates", "mix", "shares")
    if not is_counted or not _are_explained_alike(expected, given, but_for=changed):
        return False
    before, now = (answer.document["headroom"] for answer in (expected, given))
    return all(now[name]["fits"] <= before[name]["fits"] <= now[name]["at_most"] for name in before)


def reworded(request: Request, expected: Answer, given: Answer) -> bool:
    """A refusal says in other words that nothing counts or has a share, that all are replaced, or who can be apart."""
    words = (b"counts towards fair shares", b"have no share", b"replaced all or none", b"With each in together")
    return expected.status == given.status == 400 and any(each in given.body for each in words)


def terms_of_the_claim(request: Request, expected: Answer, given: Answer) -> bool:
    """What a claim avoids, prefers or explains also holds for members with a request of their own."""
    body = request.body
    if request.path != "/planner/v1/claims" or not isinstance(body, dict) or not isinstance(body.get("members"), list):
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
        name: len(value) if is_near_miss and name == "providers" else _telling(value, but_for)
        for name, value in document.items()
        if name not in but_for
    }


KNOWN: tuple[Callable[[Request, Answer, Answer], bool], ...] = (
    budget,
    order_of_keys,
    release_fails,
    last_digits,
    searched,
    near_misses,
    scores_without_room,
    explained_details,
    largest_with_traits,
    single_providers,
    slots_of_pools,
    reworded,
    one_voice_on_fair_shares,
    terms_of_the_claim,
)
"""The differences that are meant to be there: the name of each is the function's, the reason its docstring."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An answer that differs from the release's, with what was done before."""

    rows: Rows
    sent: Sequence[Request]
    """The requests as they were sent; the last one has the differing answer."""
    expected: Answer | None
    given: Answer | None
    difference: str


@dataclass(slots=True)
class Tally:
    """What the rounds did, as evidence that they were not idle."""

    requests: "Counter[str]" = field(default_factory=Counter)
    known: "Counter[str]" = field(default_factory=Counter)

    def count(self, request: Request, answer: Answer) -> None:
        """Count a request by what it is and how it was answered."""
        path = request.path if request.path.startswith(("/planner", "/allocation_c")) else "others"
        document = answer.document if answer.status == 200 else None
        is_empty = isinstance(document, dict) and document.get("allocation_requests") == []
        self.requests[f"{request.method} {path} {'none' if is_empty else answer.status}"] += 1


def chance_of(seed: int, number: int) -> Random:
    """Return what decides a round."""
    return Random(f"{seed}/{number}")


def play(pair: Pair, chance: Random, *, requests: int, tally: Tally) -> Mismatch | None:
    """Create a cloud and send so many requests; return the first difference that is not known."""
    scene = random_scene(chance)
    dialogue = Dialogue(scene.world)
    drawn = [*scene.opening, *[dialogue.next] * requests]
    return _play(pair, scene.rows, drawn, tally=tally, dialogue=dialogue)


def _play(
    pair: Pair,
    rows: Rows,
    requests: Iterable[Request | Callable[[], Request]],
    *,
    tally: Tally,
    dialogue: Dialogue | None = None,
) -> Mismatch | None:
    reset(pair, rows)
    sent: list[Request] = []
    for each in requests:
        request = (each() if callable(each) else each).resolved(pair.reference.generation)
        sent.append(request)
        expected, given = pair.ask(request)
        tally.count(request, expected)
        if dialogue is not None:
            dialogue.learn(request, expected)
        text = FAILURE if given.status == 500 else difference(request, expected, given)
        if text is None:
            continue
        reasons = () if text == FAILURE else KNOWN
        name = next((known.__name__ for known in reasons if known(request, expected, given)), None)
        if name is None:
            return Mismatch(rows, sent, expected, given, text)
        tally.known[name] += 1
        if changes_something(request) and text != ORDER_OF_KEYS:
            return None  # The two clouds may differ from now on.
    text = _first_difference(contents(pair.reference), contents(pair.subject), "tables")
    return Mismatch(rows, sent, None, None, text) if text else None


def shortened(pair: Pair, mismatch: Mismatch) -> Mismatch:
    """Return the same mismatch after fewer requests, if it also shows after the writes alone, or after nothing."""
    *before, last = mismatch.sent
    for kept in ([], [each for each in before if changes_something(each)]):
        again = _play(pair, mismatch.rows, [*kept, last], tally=Tally())
        if again is not None and len(again.sent) == len(kept) + 1:
            return again
    return mismatch


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
