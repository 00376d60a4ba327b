"""The reference, without three defects of its candidate search where a header says so.

A difference is attributed to a defect only if it disappears with the defect. The header ``x-mend`` lists the defects to
mend:

amounts
    The reference adds up amounts in objects that several candidates share, unless group_policy is none.
anchors
    It takes candidates of the unsuffixed group that differ only in their tree for one, so a sharing provider that
    serves the whole group is joined with other groups in one tree only.
homes
    It reads providers by the roots of their trees, so it fails with a sharing provider that is not a root.

Without the header every answer is the reference's. It is only faster: the schema of each request is validated against
the meta-schema once, and the garbage collector looks for cycles less often.
"""

import copy
import gc
from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy as sa
from jsonschema import validators
from placement.db.sqlalchemy.models import ResourceProvider
from placement.objects import allocation_candidate, research_context, trait

from placement.wsgi.api import application as original

mended: set[str] = set()
"""The defects to mend for the current request; there is only one thread."""

Request = allocation_candidate.AllocationRequest
Context = research_context.RequestWideSearchContext

copy_if_needed = Context.copy_arr_if_needed
equal, hashed = Request.__eq__, Request.__hash__
consolidated = allocation_candidate._consolidate_allocation_requests
summaries_built = allocation_candidate._build_provider_summaries


def copy_amounts(context: Any, part: Any) -> Any:
    """Always copy what will be added to."""
    return copy.copy(part) if "amounts" in mended else copy_if_needed(context, part)


def equal_with_anchor(one: Any, other: Any) -> bool:
    """Treat candidates of different trees as different."""
    same_tree = one.anchor_root_provider_uuid == other.anchor_root_provider_uuid
    return equal(one, other) and (same_tree or "anchors" not in mended)


def consolidated_anywhere(parts: Any, context: Any) -> Any:
    """Merge a candidate of each group; after merging, their trees no longer matter."""
    merged = consolidated(parts, context)
    if "anchors" in mended:
        merged.anchor_root_provider_uuid = None
    return merged


def summaries_built_by_home(context: Any, search: Any, providers: Any, traits: Any) -> None:
    """Read the whole trees of providers, whether or not these are roots."""
    if "homes" in mended:
        provider = ResourceProvider.__table__.c
        rows = context.session.execute(sa.select(provider.root_provider_id).where(provider.id.in_(providers)))
        providers = {root for (root,) in rows}
        traits = trait.get_traits_by_provider_tree(context, providers)
    summaries_built(context, search, providers, traits)


def once_for_each(check: Callable[..., None]) -> Callable[..., None]:
    """Return a check that examines each object only once."""
    checked: dict[int, Any] = {}

    def check_schema(schema: Any, *args: Any, **options: Any) -> None:
        if id(schema) not in checked:
            check(schema, *args, **options)
            checked[id(schema)] = schema  # Kept, so that no other object has its id.

    return check_schema


gc.set_threshold(50_000, 20, 100)
for validator in (validators.Draft7Validator, validators.Draft202012Validator):
    validator.check_schema = staticmethod(once_for_each(validator.check_schema))  # type: ignore[method-assign]
Context.copy_arr_if_needed = copy_amounts
Request.__eq__, Request.__hash__ = equal_with_anchor, hashed
allocation_candidate._consolidate_allocation_requests = consolidated_anywhere
allocation_candidate._build_provider_summaries = summaries_built_by_home


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer without the defects that the request lists."""
    mended.clear()
    mended.update(environ.get("HTTP_X_MEND", "").split(","))
    answer: Iterable[bytes] = original(environ, start_response)
    return answer
