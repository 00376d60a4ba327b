"""Fair-share answers as JSON."""

from collections.abc import Mapping
from typing import Any

from placement.allocators.fair_share import Behind, Giving, NodeShare, Parting, Turn
from placement.api.planner.proposal_json import allocation_request
from placement.services.fair_share.room_on_a_host import RoomOnHost
from placement.services.fair_share.shares import Shares
from placement.settings.planner.values import FairShareSettings

MAX_LEVELS = 100
"""How many deciding pairs of queues to show."""


def tree_json(shares: Shares, settings: FairShareSettings, own: str | None = None) -> dict[str, Any]:
    """Return a tree as JSON; with ``own``, only the nodes on the path to it."""
    nodes = [node for node in shares.nodes if own is None or f"{own}/".startswith(f"{node.path}/")]
    return {
        "age_s": round(shares.age_s, 3),
        "classes": list(settings.classes),
        "partition": settings.partition,
        "totals": shares.totals,
        "free": shares.free,
        "nodes": [_node_json(node, shares, settings) for node in nodes],
    }


def named(member: str, settings: FairShareSettings) -> dict[str, str]:
    """Return the key and value that identify a leaf."""
    return {"project_id" if settings.leaves == "project" else "consumer_type": member}


def _node_json(node: NodeShare, shares: Shares, settings: FairShareSettings) -> dict[str, Any]:
    return {
        "path": node.path,
        **(named(shares.members[node.path], settings) if node.is_leaf else {}),
        "weight": node.weight,
        "usage": node.usage,
        "held": node.held,
        "entitled": shares.entitled[node.path],
        "over": shares.over(node),
        "under": shares.under(node),
        "gives": shares.gives(node),
        "vector": node.vector,
        "share": node.share,
        "weighted_share": node.weighted_share,
        "dominant": node.dominant,
        "blocked": node.is_blocked,
    }


def turn_json(turn: Turn, members: Mapping[str, str], settings: FairShareSettings) -> dict[str, Any]:
    """Return one place in the order as JSON."""
    leaf = turn.leaf
    return {
        **named(members[leaf.path], settings),
        "path": leaf.path,
        "share": leaf.share,
        "weighted_share": leaf.weighted_share,
        "dominant": leaf.dominant,
        "blocked": leaf.is_blocked,
        "lacking": list(leaf.lacking),
        "behind": None if turn.behind is None else _behind(turn.behind),
    }


def _behind(behind: Behind) -> dict[str, Any]:
    """Return what puts a leaf behind the one before it."""
    return {"reason": behind.reason, "node": _compared(behind.node), "other": _compared(behind.other)}


def _compared(node: NodeShare) -> dict[str, Any]:
    return {"path": node.path, "weighted_share": node.weighted_share, "blocked": node.is_blocked}


def parting_json(parting: Parting) -> dict[str, Any]:
    """Return where the paths of claimant and giver diverge, and the amounts that decide there."""
    return {
        "claimant": {"path": parting.claimant, "with_claim": parting.claims, "entitled": parting.claimant_entitled},
        "giver": {"path": parting.giver, "holds": parting.holds, "entitled": parting.giver_entitled},
    }


def giving_json(giving: Giving, members: Mapping[str, str], settings: FairShareSettings) -> dict[str, Any]:
    """Return who gives back, and what decided it."""
    return {
        "feasible": giving.feasible,
        "complete": giving.complete,
        "lacking": giving.lacking,
        "give_back": [
            {
                "consumer_uuid": held.name,
                **named(members[held.leaf], settings),
                "resources": held.amounts,
                "value": held.value,
            }
            for held in giving.given_back
        ],
        "levels": [parting_json(parting) for parting in giving.partings[:MAX_LEVELS]],
    }


def room_json(room: RoomOnHost, settings: FairShareSettings) -> dict[str, Any]:
    """Return who makes room on which host, and the candidate that would then rank first."""
    uuids = {id_: member.uuid for id_, member in room.providers.items()}
    candidate = None if room.candidate is None else allocation_request(room.candidate.proposal, uuids)
    return {**giving_json(room.giving, room.members, settings), "host": room.host, "candidate": candidate}
