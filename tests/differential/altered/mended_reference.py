"""The reference without two defects of its candidate search, switched on and off by a header.

A difference is put down to a defect only if it goes away with the defect. The header ``x-mend`` lists what to mend:

amounts
    The reference adds up amounts in objects that several candidates share, unless group_policy is none.
anchors
    It takes candidates of the unsuffixed group that differ only in their tree for one, so a sharing provider that
    serves the whole group is joined with other groups in one tree only.
"""

import copy
from collections.abc import Callable, Iterable
from typing import Any

from placement.objects import allocation_candidate, research_context

from placement.wsgi.api import application as original

mended: set[str] = set()
"""What the request at hand is to be answered without; there is one thread."""

Request = allocation_candidate.AllocationRequest
Context = research_context.RequestWideSearchContext

copy_if_needed = Context.copy_arr_if_needed
equal, hashed = Request.__eq__, Request.__hash__
consolidated = allocation_candidate._consolidate_allocation_requests


def copy_amounts(context: Any, part: Any) -> Any:
    """Copy always what will be added to."""
    return copy.copy(part) if "amounts" in mended else copy_if_needed(context, part)


def equal_with_anchor(one: Any, other: Any) -> bool:
    """Tell candidates of different trees apart."""
    same_tree = one.anchor_root_provider_uuid == other.anchor_root_provider_uuid
    return equal(one, other) and (same_tree or "anchors" not in mended)


def consolidated_anywhere(parts: Any, context: Any) -> Any:
    """Merge a candidate of every group; merged, it does not matter any more through which tree."""
    merged = consolidated(parts, context)
    if "anchors" in mended:
        merged.anchor_root_provider_uuid = None
    return merged


Context.copy_arr_if_needed = copy_amounts
Request.__eq__, Request.__hash__ = equal_with_anchor, hashed
allocation_candidate._consolidate_allocation_requests = consolidated_anywhere


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer without the defects that the request names."""
    mended.clear()
    mended.update(environ.get("HTTP_X_MEND", "").split(","))
    answer: Iterable[bytes] = original(environ, start_response)
    return answer
