"""The output of a run: mismatches as shell scripts, and a summary of what was done."""

import json

from tests.differential.answers import Answer
from tests.differential.rounds import Mismatch, Tally

SHOWN_CHARACTERS = 1500
SHOWN_FAILURES = 10


def mismatch_script(mismatch: Mismatch, where: str) -> str:
    """Return a script that reproduces the mismatch on any server, with both answers as comments."""
    lines = [f"# mismatch in {where}: {' '.join(map(str, mismatch.kind))}"]
    lines += ["URL=http://127.0.0.1:8000  # an empty server with noauth2", *(one.curl() for one in mismatch.sent)]
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
