"""How a claim's members are to be placed on the fabric: from its body to GangRules."""

from collections.abc import Mapping
from typing import Any

from placement.domain.fabric import ANYWHERE, THE_HOST, FabricLevel, GangRules, Together
from placement.errors import InvalidAt
from placement.settings import PlannerSettings


def gang_rules(body: Mapping[str, Any], settings: PlannerSettings, *, members: int) -> GangRules:
    """Return the rules that a body states about its members as a whole.

    Args:
        body: the body as loaded by the schema.
        settings: the fabric's levels.
        members: the number of members.

    Raises:
        InvalidAt: a level does not exist, or rules contradict each other.
    """
    rules = GangRules(_together(body, settings), _apart(body, settings))
    if rules.are_none:
        return ANYWHERE
    named = "together" if rules.together else "apart"
    if "members" not in body:
        raise InvalidAt((named,), "There must be members.")
    if not body.get("all_or_nothing", True):
        raise InvalidAt((named,), 'Members whose places depend on each other need "all_or_nothing": true.')
    if rules.together is not None:
        _check_together(rules.together, rules.apart, members)
    return rules


def _together(body: Mapping[str, Any], settings: PlannerSettings) -> Together | None:
    rule = body.get("together")
    if rule is None:
        return None
    level = _level("together", rule["level"], settings)
    return Together(level, required=rule.get("mode", "required") == "required", each=rule.get("each"))


def _apart(body: Mapping[str, Any], settings: PlannerSettings) -> FabricLevel | None:
    rule = body.get("apart")
    return None if rule is None else _level("apart", rule["level"], settings)


def _level(where: str, name: str, settings: PlannerSettings) -> FabricLevel:
    if name == THE_HOST:
        return FabricLevel(name)
    if name not in settings.aggregates:
        levels = ", ".join([*settings.aggregates, THE_HOST])
        sentence = f"There is no level {name!r} of the fabric; there are: {levels}."
        raise InvalidAt(
            (where, "level"), f"{sentence} Name the aggregates of each {name} under aggregates in planner.yaml."
        )
    return FabricLevel(name, settings.aggregates[name])


def _check_together(together: Together, apart: FabricLevel | None, members: int) -> None:
    level = together.level.name
    if together.each is None:
        if apart == together.level and together.required and members > 1:
            raise InvalidAt(("apart", "level"), f"Members cannot be in one {level} and in different ones.")
        return
    if not together.required:
        raise InvalidAt(("together", "each"), 'Groups of members need "mode": "required", or no mode.')
    if members % together.each:
        raise InvalidAt(("together", "each"), f"{members} members cannot be divided into groups of {together.each}.")
    if apart is not None and not apart.is_host:
        raise InvalidAt(
            ("apart", "level"),
            f"Groups are in different places; their members can be apart on hosts, not in {apart.name}s.",
        )
