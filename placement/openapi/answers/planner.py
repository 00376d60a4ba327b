"""The answers of the planner API."""

from typing import Any, get_args
from uuid import UUID

from placement.allocators.fair_share.order import Reason
from placement.api.fields import Json
from placement.api.routing import PLANNER_PATH
from placement.api.versions import Versioned
from placement.candidates.explain.explain import WORDS
from placement.candidates.explain.explanation import UNITS, ConditionKind, HintKind
from placement.openapi.answers.plain import AMOUNTS, always
from placement.openapi.shapes import Ready, all_are, by_class, by_name, by_uuid, one_of, or_null, shape, shared

_SHARES = by_class(float)

# Explanations
_CONDITION = {"condition": one_of(ConditionKind), "groups": [str], "value": str}
_PROVIDER_NAME = {"uuid": UUID, "name": str}
_PROVIDER = _PROVIDER_NAME | {"root_provider_uuid": UUID}
_FACTS = {f"{word}?": str for word in WORDS.values()} | {
    f"{fact}?": float for fact in ("asked", "free", *map(str, UNITS))
}
_STEP = _CONDITION | {"text": str, "trees": int, "providers?": int}
_DEMAND = {"groups": [str], "resources": AMOUNTS, "steps": [shared("ExplainedStep")]}
_SHORTFALL = {"shortfall?": {"group": str, "asked": int, "most": int}}
_NEAR_MISS = (
    _CONDITION
    | {"message": str, "trees": int, "complete": bool, "providers": [_PROVIDER | _FACTS]}
    | {"largest": or_null({"amount": int, "providers": int})}
    | _SHORTFALL
)
_HINT = (
    {"hint": one_of(HintKind)}
    | _CONDITION
    | {"message": str, "trees?": int, "provider?": _PROVIDER, "found_on?": _PROVIDER}
)
_EXPLANATION = {
    "trees_with_candidates": int,
    "complete": bool,
    "cause": or_null(_CONDITION | {"message": str} | _SHORTFALL),
    "demands": [_DEMAND],
    "trees": [shared("ExplainedStep")],
    "near_misses": [_NEAR_MISS],
    "hints": [_HINT],
}

# Plans and claims
_REQUEST = {"allocations": shared("Taken"), "mappings": shared("Mappings")}
_PARTS = {
    "total": float,
    **all_are(or_null(float), "fit", "sra", "compactness", "fragmentation"),
    "raw": all_are(or_null(float), "fit", "sra"),
    "touched": by_name(int),
}
_PLAN = {
    "allocation_requests": [_REQUEST],
    "provider_summaries": by_uuid(shared("ProviderSummary")),
    "scores": [
        _PARTS
        | {
            "keeps_proportion?": bool,
            **all_are(float, "group?", "s_l?"),
            "exclusive?": by_uuid(or_null(str)),
            "like?": UUID,
        }
    ],
    "complete": bool,
    "searched": int,
    "explanation?": shared("Explanation"),
    "ignored?": [str],
}
_SCORES = {"profile": str, "scores": [_PARTS | {"keeps_proportion": or_null(bool), "has_room": bool}]}
_CONSUMER = {"uuid": UUID, "project_id": str, "user_id": str, "consumer_type": str, "consumer_generation": int}
_REFUSED = {"consumer": UUID, "code": str, "detail": str, "complete?": bool}
_MEMBERS = {"members": [shared("Claimed")], "refused?": [_REFUSED], "ignored?": [str]}
_CLAIM = Ready(anyOf=[shared("Claimed"), shape(_MEMBERS)])

# What identifies a leaf of the fair-share tree: a project or a consumer type, as configured.
_LEAF = {"project_id?": str, "consumer_type?": str}

# Headroom
_COPIES = {"fits": int, "at_most": int, "complete": bool}
_TREE_NAME = {"uuid": or_null(UUID), "name": str}
_HEADROOM = _COPIES | {
    "trees_with_room": int,
    "trees_without_room": int,
    "lacking": [{"resource_classes": [str], "trees": int}],
    "message": str,
    "stranded": AMOUNTS,
    "one_more": [{"like": _TREE_NAME, "trees": int} | _COPIES],
    "trees": [_TREE_NAME | _COPIES],
    "aggregates": [{"uuid": UUID} | _COPIES],
    "shares?": [{"path": str} | _COPIES | _LEAF],
    "ignored?": [str],
}
_HEADROOMS = {"headroom": by_name(shared("Headroom")), "complete": bool, "mix?": _COPIES}

# Reading
_INVENTORY = {
    "providers": [
        {
            "uuid": UUID,
            "name": str,
            "generation": int,
            "parent_provider_uuid": or_null(UUID),
            "root_provider_uuid": UUID,
            "inventories": by_class(shared("Inventory")),
            "usages": AMOUNTS,
            **all_are([str], "traits", "aggregates"),
        }
    ]
}
_JOURNAL = {
    "entries": [
        {
            "id": int,
            **all_are(str, "time", "kind", "action", "provider_uuid?", "consumer_uuid?", "project_id?", "user_id?"),
            **all_are(str, "consumer_type?", "resource_class?", "name?"),
            **all_are(int, "old_amount?", "new_amount?", "generation?"),
            **all_are(by_name(object), "old?", "new?"),
            **all_are(str, "request_id?", "by_user_id?", "by_project_id?", "route?"),
        }
    ],
    "cursor?": str,
    "before?": int,
    "provider_names?": by_name(str),
}
_AT = {
    "provider_uuid": UUID,
    "time": str,
    "inventories": by_class(by_name(float)),
    "usages": AMOUNTS,
    "holders": by_name(AMOUNTS),
    **all_are([str], "traits", "aggregates"),
}
_FLAVOR = {"weight": float, "resources": AMOUNTS, "devices?": int, "share?": int, "kinds?": [str]}
_PROFILE = {
    "fit?": {"weight": float, "resources": by_name({"type": str, "weight": float})},
    "sra?": {"weight": float, "mode": str, "resources": by_name(float)},
    "proportional?": {"mode": str, "exempt": str, "reserve": by_name(by_name(float))},
    "compactness?": {"weight": float},
    "fragmentation?": {
        "weight": float,
        "devices": str,
        "size": int,
        **all_are([str], "kinds", "beside"),
        "refresh_s": float,
        "flavors?": by_name(_FLAVOR),
    },
}
_DEVICE_TYPE = {
    "class": str,
    "whole": int,
    "label_prefix": str,
    "resources": by_name(int),
    **all_are(str, "virtual_function?", "shared?"),
}
_PROFILES = {
    "default_profile": str,
    "profiles": by_name(_PROFILE),
    **all_are(by_name(str), "levels", "exclusive"),
    "devices": {
        "types": by_name(_DEVICE_TYPE),
        **all_are(by_name(str), "base", "labels", "host"),
        **all_are(str, "same_pcie?", "same_numa?"),
    },
    "aggregates": by_name(by_name([str])),
    "learnt?": by_name({"since": or_null(str), "flavors": by_name(_FLAVOR)}),
}
_INDEX = {
    "version": str,
    "ranking": {"enabled": bool, "near_equal": float, "default_profile": str},
    "resources": by_name([str]),
}

# Whole trees
_TREE_STOCKS = by_class({"capacity": int, "used": int})
_LISTED_TREE = _PROVIDER_NAME | {"providers": int, "disabled": bool, "resources": _TREE_STOCKS}
_TREE_CONSUMER = (
    {"consumer_uuid": str, "project_id": str, "user_id": str, "consumer_type": or_null(str)}
    | {"since": or_null(str), "resources": AMOUNTS}
    | {"target?": or_null(_PROVIDER_NAME | {"allocations": shared("Taken")})}
)
_TREE_CONSUMERS = (
    _PROVIDER_NAME | all_are(bool, "disabled", "complete") | {"consumers": [_TREE_CONSUMER], "dry_run?": bool}
)

# Fair shares
_STANDING = {"share": float, "weighted_share": float, "dominant": or_null(str), "blocked": bool}
_AMOUNTS = {"usage": _SHARES, "held": float} | all_are(_SHARES, "entitled", "over", "under", "gives", "vector")
_NODE = {"path": str, "weight": float} | _AMOUNTS | _STANDING | _LEAF
_TREE = {
    "age_s": float,
    "classes": [str],
    "partition": or_null(UUID),
    **all_are(_SHARES, "totals", "free"),
    "nodes": [_NODE],
}
_COMPARED = {"path": str, "weighted_share": float, "blocked": bool}
_BEHIND = {"reason": one_of(get_args(Reason)), "node": _COMPARED, "other": _COMPARED}
_TURN = {"path": str} | _STANDING | {"lacking": [str], "behind": or_null(_BEHIND)} | _LEAF
_ORDER = {"age_s": float, "order": [_TURN]}
_PORTION = {"served": [int], "given": _SHARES, "share": float, "blocked": bool} | _LEAF
_FILLED = {"age_s": float, "complete": bool, "portions": [_PORTION], "order": [str]}
_GIVEN_BACK = {"consumer_uuid": str, "resources": _SHARES, "value": float} | _LEAF
_LEVEL = {
    "claimant": {"path": str, "with_claim": _SHARES, "entitled": _SHARES},
    "giver": {"path": str, "holds": _SHARES, "entitled": _SHARES},
}
_RECLAIMED = {
    **all_are(bool, "feasible", "complete"),
    "lacking": _SHARES,
    "give_back": [_GIVEN_BACK],
    "levels": [_LEVEL],
    # If the body has a request: the root of the tree that gives back, and the candidate that then ranks first.
    "host?": or_null(UUID),
    "candidate?": or_null(_REQUEST),
    "ignored?": [str],
}

_HITS = {"total": int, "examples": [str]}
_AUDIT = {
    "unknown_consumers": [
        {
            **all_are(str, "consumer_uuid", "consumer_type", "project_id"),
            "allocations": by_uuid({"name": str, "resources": AMOUNTS}),
        }
    ],
    "overcommitted": [{"provider_uuid": UUID, "name": str, "resource_class": str, "used": int, "capacity": float}],
    "odd_rows": [str],
    "consumers_without_allocations": _HITS,
    "aggregates_without_members": _HITS,
}

COMPONENTS: dict[str, Any] = {
    "ExplainedStep": _STEP,
    "Explanation": _EXPLANATION,
    "Headroom": _HEADROOM,
    "Claimed": {"consumer": _CONSUMER} | _REQUEST | {"ignored?": [str]},
}
"""Schemas that several answers share."""

ANSWERS: dict[tuple[str, str, int], Versioned[Json]] = {
    ("GET", PLANNER_PATH, 200): always(_INDEX),
    ("POST", f"{PLANNER_PATH}/audit", 200): always(_AUDIT),
    ("POST", f"{PLANNER_PATH}/candidates", 200): always(_PLAN),
    ("POST", f"{PLANNER_PATH}/claims", 200): always(_CLAIM),
    ("POST", f"{PLANNER_PATH}/claims", 201): always(_CLAIM),
    ("GET", f"{PLANNER_PATH}/explain", 200): always(shared("Explanation")),
    ("GET", f"{PLANNER_PATH}/fair-share", 200): always(_TREE),
    ("POST", f"{PLANNER_PATH}/fair-share/order", 200): always(_ORDER),
    ("POST", f"{PLANNER_PATH}/fair-share/fill", 200): always(_FILLED),
    ("POST", f"{PLANNER_PATH}/fair-share/reclaim", 200): always(_RECLAIMED),
    ("GET", f"{PLANNER_PATH}/headroom", 200): always(shared("Headroom")),
    ("POST", f"{PLANNER_PATH}/headroom", 200): always(_HEADROOMS),
    ("GET", f"{PLANNER_PATH}/inventory", 200): always(_INVENTORY),
    ("GET", f"{PLANNER_PATH}/journal", 200): always(_JOURNAL),
    ("GET", f"{PLANNER_PATH}/journal/at", 200): always(_AT),
    ("GET", f"{PLANNER_PATH}/profiles", 200): always(_PROFILES),
    ("POST", f"{PLANNER_PATH}/scores", 200): always(_SCORES),
    ("GET", f"{PLANNER_PATH}/trees", 200): always({"trees": [_LISTED_TREE], "complete": bool}),
    ("GET", f"{PLANNER_PATH}/trees/<uuid>", 200): always(_TREE_CONSUMERS),
    ("POST", f"{PLANNER_PATH}/trees/<uuid>/drain", 200): always(_TREE_CONSUMERS),
}
"""As ``plain.ANSWERS``."""
