"""The query string of GET /allocation_candidates, parsed by the rules of its microversion into a CandidateRequest.

Also how the operator has configured the search.
"""

import re
from collections.abc import Iterable

from placement.api.fields import text
from placement.api.query import ANY, PREFIX, Query, parse_in_tree, parse_member_of, parse_required, parse_resources
from placement.api.versions import Version, Versioned
from placement.candidates.ranking import Ranking
from placement.domain.search_plan import CandidateRequest, RequestGroup, SearchLimits
from placement.errors import Invalid
from placement.services.allocation_candidates import SearchOptions
from placement.settings import Settings

BAD_VALUE = "placement.query.bad_value"
MISSING_VALUE = "placement.query.missing_value"
DUPLICATE_KEY = "placement.query.duplicate_key"

LIMIT = text(pattern="[1-9][0-9]*")
POLICY = text("none", "isolate")

MAX_GROUPS = 250
MAX_CLASSES = 25
"""Each class of a granular group joins two tables, and SQLite joins at most 64."""

NUMBER = "[1-9][0-9]*"
SUFFIX = "[a-zA-Z0-9_-]{1,64}"
ROOT_REQUIRED_VERSION = Version(1, 38)
"""root_required keeps the syntax that ``required`` had until 1.38, without ``in:``."""

_AT_1_25 = {"limit": LIMIT, "group_policy": POLICY}
KEYS = Versioned(
    {
        (1, 10): {"resources": ANY},
        (1, 16): {"resources": ANY, "limit": LIMIT},
        (1, 17): {"resources": ANY, "limit": LIMIT, "required": ANY},
        (1, 21): {"resources": ANY, "limit": LIMIT, "required": ANY, "member_of": ANY},
        (1, 25): _AT_1_25,
        (1, 35): {**_AT_1_25, "root_required": ANY},
        (1, 36): {**_AT_1_25, "root_required": ANY, "same_subtree": ANY},
    }
)
_PREFIXES = Versioned(
    {
        (1, 10): (),
        (1, 25): ("resources", "required", "member_of"),
        (1, 31): ("resources", "required", "member_of", "in_tree"),
    }
)
_SUFFIX = Versioned({(1, 10): NUMBER, (1, 33): SUFFIX})


def candidate_request(query: Query, version: Version) -> CandidateRequest:
    """Return the request that a query string describes, or Invalid with the reference's messages and codes."""
    patterns = [f"{prefix}({_SUFFIX.at(version)})?" for prefix in _PREFIXES.at(version)]
    query.check(KEYS.at(version), patterns=patterns, required=() if patterns else ("resources",))
    root_required, root_forbidden = _root_traits(query)
    same_subtree = tuple(_subtree(value) for value in query.every("same_subtree"))
    groups = tuple(_group(query, suffix, version) for suffix in _suffixes(query, version))
    _check_size(groups)
    if version >= (1, 36):
        _check_resourceless(groups, same_subtree)
    else:
        _check_resources(groups)
    _check_traits(groups)
    policy = query.first("group_policy")
    if policy is None and sum(group.is_granular for group in groups) > 1:
        raise Invalid(
            'The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.'
        )
    return CandidateRequest(
        groups=groups,
        isolate=policy == "isolate",
        same_subtree=same_subtree,
        root_required=root_required,
        root_forbidden=root_forbidden,
        limit=_limit(query.first("limit")),
        combines_nested=version >= (1, 29),
    )


def forgiving_request(query: Query, version: Version) -> CandidateRequest:
    """Return the request of a query string that may leave out the group policy, which is then ``none``."""
    has_policy = "group_policy" in query or version < (1, 25)
    return candidate_request(query if has_policy else Query([*query.pairs, ("group_policy", "none")]), version)


def _limit(value: str | None) -> int | None:
    """Return the maximum number of candidates. Ten digits or more mean no limit: no answer is that long."""
    return int(value) if value is not None and len(value) < 10 else None


def _suffixes(query: Query, version: Version) -> Iterable[str]:
    """Return the suffixes of all groups in the order of their first key."""
    pattern = f"(resources|required|member_of|in_tree)({_SUFFIX.at(version)})?"
    matches = (re.fullmatch(pattern, key) for key in query)
    return dict.fromkeys(match[2] or "" for match in matches if match)


def _group(query: Query, suffix: str, version: Version) -> RequestGroup:
    resources = query.last(f"resources{suffix}")
    in_tree = query.last(f"in_tree{suffix}")
    required, forbidden = parse_required(query.every(f"required{suffix}"), version)
    member_of, forbidden_aggregates = parse_member_of(query.every(f"member_of{suffix}"), version, suffix=suffix)
    return RequestGroup(
        suffix=suffix,
        resources=parse_resources(resources) if resources is not None else {},
        required=tuple(dict.fromkeys(required)),
        forbidden=forbidden,
        member_of=tuple(dict.fromkeys(member_of)),
        forbidden_aggregates=forbidden_aggregates,
        in_tree=parse_in_tree(in_tree) if in_tree is not None else None,
    )


def _root_traits(query: Query) -> tuple[frozenset[frozenset[str]], frozenset[str]]:
    values = query.every("root_required")
    if len(values) > 1:
        raise Invalid("Query parameter 'root_required' may be specified only once.", code=DUPLICATE_KEY)
    sets, forbidden = parse_required(values, ROOT_REQUIRED_VERSION)
    if conflicts := sorted(forbidden.intersection(frozenset[str]().union(*sets))):
        raise Invalid(
            f"Conflicting required and forbidden traits found in root_required: {', '.join(conflicts)}", code=BAD_VALUE
        )
    return frozenset(sets), forbidden


def _subtree(value: str) -> frozenset[str]:
    suffixes = frozenset(suffix.strip() for suffix in value.split(","))
    if "" in suffixes:
        raise Invalid("Empty string (unsuffixed group) can not be specified in `same_subtree` ", code=BAD_VALUE)
    return suffixes


def _check_size(groups: tuple[RequestGroup, ...]) -> None:
    """Refuse oversized requests before they become a statement that no database can plan."""
    if len(groups) > MAX_GROUPS:
        raise Invalid(f"{PREFIX}more than {MAX_GROUPS} request groups")
    if any(group.is_granular and len(group.resources) > MAX_CLASSES for group in groups):
        raise Invalid(f"{PREFIX}more than {MAX_CLASSES} resource classes in one granular request group")


def _check_resourceless(groups: tuple[RequestGroup, ...], same_subtree: tuple[frozenset[str], ...]) -> None:
    """Check that every group without resources is in a same_subtree, which is possible from 1.36 on."""
    present = [group.suffix for group in groups]
    without = [group.suffix for group in groups if not group.resources]
    tied = frozenset().union(*same_subtree)
    if len(without) == len(present):
        raise Invalid("There must be at least one resources or resources[$S] parameter.", code=MISSING_VALUE)
    if loose := sorted(set(without) - tied):
        raise Invalid(
            "Resourceless suffixed group request should be specified in `same_subtree` query param: "
            f"bad group(s) - {loose}.",
            code=BAD_VALUE,
        )
    if unknown := sorted(tied - set(present)):
        raise Invalid(
            f"Real suffixes should be specified in `same_subtree`: {unknown} not found in {present}.", code=BAD_VALUE
        )


def _check_resources(groups: tuple[RequestGroup, ...]) -> None:
    """Check that every group has resources (before 1.36)."""
    without = [group for group in groups if not group.resources]
    if orphans := [f"required{group.suffix}" for group in without if group.required]:
        raise Invalid(
            "All traits parameters must be associated with resources.  Found the following orphaned traits keys: "
            + ", ".join(orphans)
        )
    if orphans := [f"member_of{group.suffix}" for group in without if group.member_of or group.forbidden_aggregates]:
        raise Invalid(
            "All member_of parameters must be associated with resources. Found the following orphaned member_of keys: "
            + ", ".join(orphans)
        )
    if without:
        raise Invalid("All request groups must specify resources.")
    if not groups:
        raise Invalid("At least one request group (`resources` or `resources{$S}`) is required.")


def _check_traits(groups: tuple[RequestGroup, ...]) -> None:
    conflicts = [
        f"required{group.suffix}: ({', '.join(sorted(any_of))})"
        for group in groups
        for any_of in group.required
        if any_of <= group.forbidden
    ]
    if conflicts:
        raise Invalid(
            "Conflicting required and forbidden traits found in the following traits keys: "
            + ", ".join(sorted(conflicts))
        )


def search_options(settings: Settings, limits: SearchLimits) -> SearchOptions:
    """Return how the operator configured candidate generation."""
    chosen, ranks = settings.placement, settings.ranking.enabled
    default = "breadth-first" if ranks else "depth-first"
    return SearchOptions(
        max_candidates=chosen.max_allocation_candidates if chosen.max_allocation_candidates >= 0 else None,
        breadth_first=(chosen.allocation_candidates_generation_strategy or default) == "breadth-first",
        # A random sample has no order; in a ranking, chance only decides between trees of nearly equal score.
        shuffled=chosen.randomize_allocation_candidates and not ranks,
        limits=limits,
        locks=settings.locks_for_all,
    )


def ranking_in_force(settings: Settings) -> Ranking | None:
    """Return how the operator wants candidates ordered; None if no ranking is enabled."""
    levels, near_equal = tuple(settings.planner.levels.values()), settings.ranking.near_equal
    return Ranking(settings.planner.profile_in_force, levels, near_equal) if settings.ranking.enabled else None
