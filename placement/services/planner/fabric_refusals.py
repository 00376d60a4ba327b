"""Explain in words why a gang has no places that satisfy its rules on the fabric."""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from placement.domain.fabric import FabricLevel, GangRules, Together
from placement.services.planner.drafting import ClaimMember, Drafting
from placement.services.planner.gang import GangPlan
from placement.services.planner.refusals import NoCandidate, refusal, refusal_of_gang, shortage
from placement.store.search.provider_names import named_providers


class FabricRoom(NamedTuple):
    """What the search has learnt about the room on a fabric.

    Args:
        has_hosts: whether any host satisfies the rules.
        roomiest: the place that holds most members, and how many; None if they want different things.
        most: the most members that each place holds, or None in the same case.
        complete: whether everything was tried.
    """

    has_hosts: bool
    roomiest: tuple[Hashable, int] | None
    most: Mapping[Hashable, int] | None
    complete: bool


def refusal_by_rules(
    drafting: Drafting, members: Sequence[ClaimMember], rules: GangRules, room: FabricRoom
) -> NoCandidate:
    """Return the refusal that explains why there are no places.

    Args:
        drafting: the snapshot.
        members: the members to be placed.
        rules: how they have to lie.
        room: what the search has learnt.
    """
    number = len(members)
    for member in {drafting.prepared(one): one for one in reversed(members)}.values():
        if drafting.best(member, drafting.places_of(member, drafting.overlay, members=1), drafting.overlay) is None:
            return refusal(drafting, GangPlan(stuck=member), None, of=number)
    lacking = shortage(drafting.tx, members, drafting.overlay)
    if lacking is not None:
        return refusal_of_gang(number, lacking.in_words, complete=True, member=members[0].uuid)
    together = _of_together(drafting, rules.together, room, number) if rules.together else ""
    sentence = " ".join(filter(None, (together, _of_apart(rules, room))))
    return refusal_of_gang(number, sentence, complete=room.complete, member=members[0].uuid)


def _of_together(drafting: Drafting, together: Together, room: FabricRoom, number: int) -> str:
    level = together.level
    if not room.has_hosts and not level.is_host:
        return f"No host that could serve them is in a {level.name}: planner.yaml names {level.name}s under aggregates."
    if together.each is not None:
        wanted = f"{together.each} of them are to be in each of {number // together.each} {level.name}s"
        if room.most is None:
            return f"{wanted}."
        with_room = sum([holds >= together.each for holds in room.most.values()])
        return f"{wanted}, and no more than {with_room} have room for that many."
    if not together.required:
        return ""
    if room.roomiest is None:
        return f"No {level.name} has room for all of them."
    place, holds = room.roomiest
    return f"No {level.name} has room for all of them: {_named(drafting, level, place)} has room for {holds}."


def _of_apart(rules: GangRules, room: FabricRoom) -> str:
    if rules.apart is None:
        return ""
    name = rules.apart.name
    different = f"different {name}s"
    wanted = f"They are to be {'on' if rules.apart.is_host else 'in'} {different}"
    if rules.together is None and room.most is not None:
        return f"{wanted}, and no more than {sum(room.most.values())} have room."
    return f"{wanted}."


def _named(drafting: Drafting, level: FabricLevel, place: Hashable) -> str:
    if not level.is_host or not isinstance(place, int):
        return f"{level.name} {place}"
    found = named_providers(drafting.tx, [place])[place]
    return f"host {found.name}"
