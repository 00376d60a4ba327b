"""Plays the requests of a round on both servers, up to the first difference, and says what was done."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.differential.answers import Answer, differences
from tests.differential.known_differences import HIDDEN_CONSUMER, Case, recognised
from tests.differential.requests import Request
from tests.differential.sides import Pair

SHOWN_CHARACTERS = 1500
SHOWN_FAILURES = 10


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An answer that differs from the reference's, with the requests before it."""

    sent: Sequence[Request]
    """The requests as they were sent; the last one has the differing answer."""
    expected: Answer
    given: Answer
    differences: Sequence[str]

    @property
    def kind(self) -> tuple[str, int, int]:
        """What must be the same for a shorter round to show the same mismatch."""
        return self.differences[0].partition(":")[0], self.expected.status, self.given.status


@dataclass(slots=True)
class Tally:
    """What the rounds did, as evidence that they were not idle."""

    requests: "Counter[str]" = field(default_factory=Counter)
    known: "Counter[str]" = field(default_factory=Counter)
    failing: list[Request] = field(default_factory=list)

    def count(self, request: Request, expected: Answer) -> None:
        """Count a request by what it is and how it was answered."""
        what = "candidates" if request.is_candidates else "write" if request.is_write else "read"
        answer = str(expected.status)
        if request.is_candidates and expected.status == 200:
            answer = "some" if expected.document["allocation_requests"] else "none"
        self.requests[f"{what} {answer}"] += 1


def play(pair: Pair, requests: Sequence[Request], tally: Tally) -> Mismatch | None:
    """Send the requests to two empty clouds; return the first unknown difference."""
    pair.reset()
    sent: list[Request] = []
    for symbolic in requests:
        request = symbolic.resolved(pair.reference.generation)
        sent.append(request)
        expected, given = pair.ask(request)
        tally.count(request, expected)
        found = _differences(pair, request, expected, given)
        if found:
            case = Case(request, expected, given, pair.reference, pair.subject.name)
            name = recognised(case)
            if name is None:
                return Mismatch(sent, expected, given, found)
            tally.known[name] += 1
            if expected.status >= 500:
                tally.failing.append(request)
            if _diverged(request, expected, given):
                return None
        if request.is_write:
            tally.known[HIDDEN_CONSUMER] += pair.reference.forget_hidden_consumers()
    return None


def _differences(pair: Pair, request: Request, expected: Answer, given: Answer) -> list[str]:
    if request.is_candidates and expected.status == 200 and request.values("limit"):
        # With a limit, the server may choose which candidates to return, but they must be candidates.
        expected = pair.reference.ask(request.without("limit"))
        return differences(request, expected, given, pair.reference.roots())
    return differences(request, expected, given)


def _diverged(request: Request, expected: Answer, given: Answer) -> bool:
    """Return whether one server may have written something that the other has not."""
    return request.is_write and (expected.status < 300) != (given.status < 300)


def mismatch_script(mismatch: Mismatch, where: str) -> str:
    """Return a script that reproduces the mismatch on any server, with both answers as comments."""
    lines = [f"# mismatch in {where}: {' '.join(map(str, mismatch.kind))}"]
    lines += [
        "URL=http://127.0.0.1:8000  # an empty server with noauth2",
        *(request.curl() for request in mismatch.sent),
    ]
    lines += [f"# {line}" for line in mismatch.differences]
    return "\n".join([*lines, f"# reference: {_shown(mismatch.expected)}", f"# subject:   {_shown(mismatch.given)}"])


def tally_text(tally: Tally) -> str:
    """Return what the rounds did, as evidence that they were not idle."""
    lines = [f"{tally.requests.total()} requests"]
    lines += [f"  {what:20} {count}" for what, count in sorted(tally.requests.items())]
    lines += [f"known difference {name}: {count}" for name, count in sorted(tally.known.items())]
    failing = sorted({request.curl()[:SHOWN_CHARACTERS] for request in tally.failing}, key=len)
    return "\n".join(lines + [f"the reference failed on: {text}" for text in failing[:SHOWN_FAILURES]])


def _shown(answer: Answer) -> str:
    document = answer.document
    body = json.dumps(document) if document is not None else answer.body.decode("utf-8", "replace")
    return f"{answer.status} {body[:SHOWN_CHARACTERS]}"
