"""Whether two servers give the same answer: candidates and summaries compared as sets, everything else exactly."""

from collections import Counter
from typing import Any

import orjson

from tests.bench.sides import Answer


def difference(ours: Answer, theirs: Answer, whole: Answer | None) -> str:
    """Return how our answer differs from the reference's, or an empty string.

    Args:
        ours: our answer.
        theirs: the reference's answer to the same request.
        whole: the reference's answer without a limit where one was given: servers may choose which candidates to omit.
    """
    mine, other = ours.document(), theirs.document()
    if "allocation_requests" not in mine:
        return "" if _in_order(mine) == _in_order(other) else "another answer"
    if len(mine["allocation_requests"]) != len(other["allocation_requests"]):
        return f"{len(other['allocation_requests'])} candidates there, {len(mine['allocation_requests'])} here"
    if whole is None:
        return _different_sets(mine, other)
    return _outside(mine, whole.document())


def _different_sets(mine: Any, other: Any) -> str:
    if _candidates(mine) != _candidates(other):
        return f"{(_candidates(mine) - _candidates(other)).total()} candidates differ"
    return "" if _summaries(mine) == _summaries(other) else "summaries differ"


def _outside(mine: Any, whole: Any) -> str:
    strange = _candidates(mine) - _candidates(whole)
    if strange:
        return f"{strange.total()} candidates that the reference does not have"
    return "" if _summaries(mine).items() <= _summaries(whole).items() else "summaries differ"


def _candidates(document: Any) -> Counter[bytes]:
    return Counter(_text(candidate) for candidate in document["allocation_requests"])


def _summaries(document: Any) -> dict[str, bytes]:
    return {uuid: _text(summary) for uuid, summary in document["provider_summaries"].items()}


def _text(value: Any) -> bytes:
    return orjson.dumps(_in_order(value), option=orjson.OPT_SORT_KEYS)


def _in_order(value: Any) -> Any:
    """Return the value with all lists of names sorted: their order is meaningless."""
    if isinstance(value, dict):
        return {name: _in_order(item) for name, item in value.items()}
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return sorted(value)
    return value
