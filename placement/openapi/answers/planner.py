"""The answers of the planner API."""

from typing import get_args

from placement.allocators.fair_share.order import Reason
from placement.api.routing import PLANNER_PATH
from placement.api.versions import Versioned
from placement.candidates.explain.conditions import UNITS, ConditionKind
from placement.candidates.explain.explanation import HintKind
from placement.candidates.explain.near_misses import WORDS
from placement.openapi.answers.plain import AMOUNTS, always
from placement.openapi.shapes import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    UUID,
    Json,
    array,
    by_class,
    by_name,
    by_uuid,
    one_of,
    or_null,
    record,
    shared,
)

_SHARES = by_class(NUMBER)

# Explanations
_CONDITION = {"condition": one_of(ConditionKind), "groups": array(TEXT), "value": TEXT}
_PROVIDER_NAME = {"uuid": UUID, "name": TEXT}
_PROVIDER = _PROVIDER_NAME | {"root_provider_uuid": UUID}
_FACTS = dict.fromkeys(WORDS.values(), TEXT) | dict.fromkeys(("asked", "free", *map(str, UNITS)), NUMBER)
_STEP = record(_CONDITION | {"text": TEXT, "trees": COUNT}, {"providers": COUNT})
_DEMAND = record({"groups": array(TEXT), "resources": AMOUNTS, "steps": array(shared("ExplainedStep"))})
_SHORTFALL = {"shortfall": record({"group": TEXT, "asked": COUNT, "most": COUNT})}
_NEAR_MISS = record(
    _CONDITION
    | {"message": TEXT, "trees": COUNT, "complete": FLAG, "providers": array(record(_PROVIDER, _FACTS))}
    | {"largest": or_null(record({"amount": COUNT, "providers": COUNT}))},
    _SHORTFALL,
)
_HINT = record(
    {"hint": one_of(HintKind)} | _CONDITION | {"message": TEXT},
    {"trees": COUNT, "provider": record(_PROVIDER), "found_on": record(_PROVIDER)},
)
_EXPLANATION = record(
    {
        "trees_with_candidates": COUNT,
        "complete": FLAG,
        "cause": or_null(record(_CONDITION | {"message": TEXT}, _SHORTFALL)),
        "demands": array(_DEMAND),
        "trees": array(shared("ExplainedStep")),
        "near_misses": array(_NEAR_MISS),
        "hints": array(_HINT),
    }
)

# Plans and claims
_REQUEST = {"allocations": shared("Taken"), "mappings": shared("Mappings")}
_PARTS = {
    "total": NUMBER,
    "fit": or_null(NUMBER),
    "sra": or_null(NUMBER),
    "compactness": or_null(NUMBER),
    "fragmentation": or_null(NUMBER),
    "raw": record({"fit": or_null(NUMBER), "sra": or_null(NUMBER)}),
    "touched": by_name(COUNT),
}
_PLAN = record(
    {
        "allocation_requests": array(record(_REQUEST)),
        "provider_summaries": by_uuid(shared("ProviderSummary")),
        "scores": array(
            record(
                _PARTS,
                {
                    "keeps_proportion": FLAG,
                    "group": NUMBER,
                    "s_l": NUMBER,
                    "exclusive": by_uuid(or_null(TEXT)),
                    "like": UUID,
                },
            )
        ),
        "complete": FLAG,
        "searched": COUNT,
    },
    {"explanation": shared("Explanation"), "ignored": array(TEXT)},
)
_SCORES = record(
    {
        "profile": TEXT,
        "scores": array(record(_PARTS | {"keeps_proportion": or_null(FLAG), "has_room": FLAG})),
    }
)
_CONSUMER = record(
    {"uuid": UUID, "project_id": TEXT, "user_id": TEXT, "consumer_type": TEXT, "consumer_generation": COUNT}
)
_REFUSED = record({"consumer": UUID, "code": TEXT, "detail": TEXT}, {"complete": FLAG})
_MEMBERS = record({"members": array(shared("Claimed"))}, {"refused": array(_REFUSED), "ignored": array(TEXT)})
_CLAIM = {"anyOf": [shared("Claimed"), _MEMBERS]}

# What identifies a leaf of the fair-share tree: a project or a consumer type, as configured.
_LEAF = {"project_id": TEXT, "consumer_type": TEXT}

# Headroom
_COPIES = {"fits": COUNT, "at_most": COUNT, "complete": FLAG}
_TREE_NAME = {"uuid": or_null(UUID), "name": TEXT}
_HEADROOM = record(
    _COPIES
    | {
        "trees_with_room": COUNT,
        "trees_without_room": COUNT,
        "lacking": array(record({"resource_classes": array(TEXT), "trees": COUNT})),
        "message": TEXT,
        "stranded": AMOUNTS,
        "one_more": array(record({"like": record(_TREE_NAME), "trees": COUNT} | _COPIES)),
        "trees": array(record(_TREE_NAME | _COPIES)),
        "aggregates": array(record({"uuid": UUID} | _COPIES)),
    },
    {"shares": array(record({"path": TEXT} | _COPIES, _LEAF)), "ignored": array(TEXT)},
)
_HEADROOMS = record({"headroom": by_name(shared("Headroom")), "complete": FLAG}, {"mix": record(_COPIES)})

# Reading
_INVENTORY = record(
    {
        "providers": array(
            record(
                {
                    "uuid": UUID,
                    "name": TEXT,
                    "generation": COUNT,
                    "parent_provider_uuid": or_null(UUID),
                    "root_provider_uuid": UUID,
                    "inventories": by_class(shared("Inventory")),
                    "usages": AMOUNTS,
                    "traits": array(TEXT),
                    "aggregates": array(TEXT),
                }
            )
        )
    }
)
_JOURNAL = record(
    {
        "entries": array(
            record(
                {"id": COUNT, "time": TEXT, "kind": TEXT, "action": TEXT},
                {
                    "provider_uuid": TEXT,
                    "consumer_uuid": TEXT,
                    "project_id": TEXT,
                    "user_id": TEXT,
                    "consumer_type": TEXT,
                    "resource_class": TEXT,
                    "name": TEXT,
                    "old_amount": COUNT,
                    "new_amount": COUNT,
                    "generation": COUNT,
                    "old": by_name({}),
                    "new": by_name({}),
                    "request_id": TEXT,
                    "by_user_id": TEXT,
                    "by_project_id": TEXT,
                    "route": TEXT,
                },
            )
        )
    },
    {"cursor": TEXT, "before": COUNT},
)
_AT = record(
    {
        "provider_uuid": UUID,
        "time": TEXT,
        "inventories": by_class(by_name(NUMBER)),
        "usages": AMOUNTS,
        "holders": by_name(AMOUNTS),
        "traits": array(TEXT),
        "aggregates": array(TEXT),
    }
)
_FLAVOR = record({"weight": NUMBER, "resources": AMOUNTS}, {"devices": COUNT, "share": COUNT, "kinds": array(TEXT)})
_PROFILE = record(
    {},
    {
        "fit": record({"weight": NUMBER, "resources": by_name(record({"type": TEXT, "weight": NUMBER}))}),
        "sra": record({"weight": NUMBER, "mode": TEXT, "resources": by_name(NUMBER)}),
        "proportional": record({"mode": TEXT, "exempt": TEXT, "reserve": by_name(by_name(NUMBER))}),
        "compactness": record({"weight": NUMBER}),
        "fragmentation": record(
            {
                "weight": NUMBER,
                "devices": TEXT,
                "size": COUNT,
                "kinds": array(TEXT),
                "beside": array(TEXT),
                "refresh_s": NUMBER,
            },
            {"flavors": by_name(_FLAVOR)},
        ),
    },
)
_DEVICE_TYPE = record(
    {"class": TEXT, "whole": COUNT, "label_prefix": TEXT, "resources": by_name(COUNT)},
    {"virtual_function": TEXT, "shared": TEXT},
)
_PROFILES = record(
    {
        "default_profile": TEXT,
        "profiles": by_name(_PROFILE),
        "levels": by_name(TEXT),
        "exclusive": by_name(TEXT),
        "devices": record(
            {"types": by_name(_DEVICE_TYPE), "base": by_name(TEXT), "labels": by_name(TEXT), "host": by_name(TEXT)},
            {"same_pcie": TEXT, "same_numa": TEXT},
        ),
        "aggregates": by_name(by_name(array(TEXT))),
    },
    {"learnt": by_name(record({"since": or_null(TEXT), "flavors": by_name(_FLAVOR)}))},
)
_INDEX = record(
    {
        "version": TEXT,
        "ranking": record({"enabled": FLAG, "near_equal": NUMBER, "default_profile": TEXT}),
        "resources": by_name(array(TEXT)),
    }
)

# Whole trees
_TREE_STOCKS = by_class(record({"capacity": COUNT, "used": COUNT}))
_LISTED_TREE = record(_PROVIDER_NAME | {"providers": COUNT, "disabled": FLAG, "resources": _TREE_STOCKS})
_TREE_CONSUMER = record(
    {"consumer_uuid": TEXT, "project_id": TEXT, "user_id": TEXT, "consumer_type": or_null(TEXT)}
    | {"since": or_null(TEXT), "resources": AMOUNTS},
    {"target": or_null(record(_PROVIDER_NAME | {"allocations": shared("Taken")}))},
)
_TREE_CONSUMERS = record(
    _PROVIDER_NAME | {"disabled": FLAG, "complete": FLAG, "consumers": array(_TREE_CONSUMER)}, {"dry_run": FLAG}
)

# Fair shares
_STANDING = {"share": NUMBER, "weighted_share": NUMBER, "dominant": or_null(TEXT), "blocked": FLAG}
_AMOUNTS = {
    "usage": _SHARES,
    "held": NUMBER,
    "entitled": _SHARES,
    "over": _SHARES,
    "under": _SHARES,
    "gives": _SHARES,
    "vector": _SHARES,
}
_NODE = record({"path": TEXT, "weight": NUMBER} | _AMOUNTS | _STANDING, _LEAF)
_TREE = record(
    {
        "age_s": NUMBER,
        "classes": array(TEXT),
        "partition": or_null(UUID),
        "totals": _SHARES,
        "free": _SHARES,
        "nodes": array(_NODE),
    }
)
_COMPARED = record({"path": TEXT, "weighted_share": NUMBER, "blocked": FLAG})
_BEHIND = record({"reason": one_of(get_args(Reason)), "node": _COMPARED, "other": _COMPARED})
_TURN = record({"path": TEXT} | _STANDING | {"lacking": array(TEXT), "behind": or_null(_BEHIND)}, _LEAF)
_ORDER = record({"age_s": NUMBER, "order": array(_TURN)})
_PORTION = record({"served": array(COUNT), "given": _SHARES, "share": NUMBER, "blocked": FLAG}, _LEAF)
_FILLED = record({"age_s": NUMBER, "complete": FLAG, "portions": array(_PORTION), "order": array(TEXT)})
_GIVEN_BACK = record({"consumer_uuid": TEXT, "resources": _SHARES, "value": NUMBER}, _LEAF)
_LEVEL = record(
    {
        "claimant": record({"path": TEXT, "with_claim": _SHARES, "entitled": _SHARES}),
        "giver": record({"path": TEXT, "holds": _SHARES, "entitled": _SHARES}),
    }
)
_RECLAIMED = record(
    {
        "feasible": FLAG,
        "complete": FLAG,
        "lacking": _SHARES,
        "give_back": array(_GIVEN_BACK),
        "levels": array(_LEVEL),
    },
    # If the body has a request: the root of the tree whose consumers give back, and the candidate that then ranks
    # first.
    {"host": or_null(UUID), "candidate": or_null(record(_REQUEST)), "ignored": array(TEXT)},
)

_HITS = record({"total": COUNT, "examples": array(TEXT)})
_AUDIT = record(
    {
        "unknown_consumers": array(
            record(
                {
                    "consumer_uuid": TEXT,
                    "consumer_type": TEXT,
                    "project_id": TEXT,
                    "allocations": by_uuid(record({"name": TEXT, "resources": AMOUNTS})),
                }
            )
        ),
        "overcommitted": array(
            record({"provider_uuid": UUID, "name": TEXT, "resource_class": TEXT, "used": COUNT, "capacity": NUMBER})
        ),
        "odd_rows": array(TEXT),
        "consumers_without_allocations": _HITS,
        "aggregates_without_members": _HITS,
    }
)

COMPONENTS: dict[str, Json] = {
    "ExplainedStep": _STEP,
    "Explanation": _EXPLANATION,
    "Headroom": _HEADROOM,
    "Claimed": record({"consumer": _CONSUMER} | _REQUEST, {"ignored": array(TEXT)}),
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
    ("GET", f"{PLANNER_PATH}/trees", 200): always(record({"trees": array(_LISTED_TREE), "complete": FLAG})),
    ("GET", f"{PLANNER_PATH}/trees/<uuid>", 200): always(_TREE_CONSUMERS),
    ("POST", f"{PLANNER_PATH}/trees/<uuid>/drain", 200): always(_TREE_CONSUMERS),
}
"""As ``plain.ANSWERS``."""
