"""Whether trees have room for all slots of a plan: sums decide most trees, so that few have to be searched."""

from dataclasses import replace

from placement.candidates.budget import RequestBudget
from placement.candidates.compose.device_parts import Part
from placement.candidates.compose.device_room import DeviceRoom
from placement.candidates.compose.room_alone import RoomAlone
from placement.domain.planner_request import PlannerGroup
from placement.domain.search_plan import Plan, Slot
from placement.domain.tree import Tree


class PlanRoom:
    """The room that one plan needs.

    Args:
        plan: the plan.
    """

    def __init__(self, plan: Plan) -> None:
        request = plan.request
        groups = {group.suffix: PlannerGroup(group=group) for group in request.groups}
        parts = [Part(_decisive(slot, plan), groups[slot.suffix], None, ()) for slot in plan.slots]
        self._slots = plan.slots
        self._summed = DeviceRoom(parts, isolate=request.isolate)
        self._alone = RoomAlone(parts, plan, isolate=request.isolate)
        self.decides = not (request.same_subtree or plan.trait_sets) and request.combines_nested
        """Whether every tree with room for all slots has a candidate."""

    def is_lacking(self, tree: Tree) -> bool:
        """Tell whether a tree certainly has too little for all slots together, by a few sums."""
        return self._summed.is_lacking(tree)

    def suffices(self, tree: Tree, budget: RequestBudget) -> bool | None:
        """Tell whether a tree has room for all slots; None if the steps of a tree run out first."""
        if self.is_lacking(tree):
            return False
        return self._alone.serves(tree, [(tree.options[slot.demand], 1) for slot in self._slots], budget.of_tree())


def _decisive(slot: Slot, plan: Plan) -> Slot:
    """Return a slot with only the classes that a tree can run short of although each provider has enough for a slot."""
    if plan.request.isolate:
        return slot
    return replace(slot, resources=tuple([amount for amount in slot.resources if amount[0] in plan.contended]))
