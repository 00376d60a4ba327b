"""Hints for known keys in the wrong place of a planner request: what to write instead."""

from collections.abc import Iterator, Mapping
from typing import Any

from marshmallow import ValidationError

from placement.api.validation import Fault, Schema
from placement.settings.planner.document import IMPORT_HINT, SCHEDULER_KEYS

SCORING_KEYS = SCHEDULER_KEYS | {"fit", "sra", "proportional", "compactness", "resourceWeight"}
"""Keys about scoring, in Volcano's terms or those of profiles."""

IN_A_PROFILE = (
    "A profile defines how candidates are scored: "
    '"profile": "NAME" of planner.yaml, or "profile": {"fit": {"weight": 10, "resources": {"PGPU": {"type": '
    '"MostAllocated", "weight": 2}}}, "sra": {"weight": 10, "resources": {"PGPU": 1}}}. ' + IMPORT_HINT
)
FOR_EACH_RESOURCE = (
    "A profile defines whether to fill or spread each resource: "
    '"profile": {"fit": {"resources": {"PGPU": {"type": "MostAllocated"}, "VCPU": {"type": "LeastAllocated"}}}}.'
)
IN_A_GROUP = 'A group requests resources: "groups": {"": {"resources": {"VCPU": 2}}}.'


class HintingSchema(Schema):
    """A schema that suggests what to write instead of certain unknown keys."""

    def handle_error(self, error: ValidationError, data: Any, **_options: Any) -> None:
        """Replace all messages about unknown keys by a hint, if there is one."""
        for key, hint in _hints(data):
            if isinstance(error.messages, dict) and key not in self.fields:
                known = {name: messages for name, messages in error.messages.items() if name in self.fields}
                error.messages = {**known, key: [Fault(hint, "additionalProperties")]}
                return


def _hints(body: Any) -> Iterator[tuple[str, str]]:
    for key, value in body.items() if isinstance(body, Mapping) else ():
        if key in SCORING_KEYS or (key == "resources" and _are_weights(value)):
            yield key, IN_A_PROFILE
        elif key in {"scorer", "scorers"}:
            yield key, FOR_EACH_RESOURCE
        elif key == "resources":
            yield key, IN_A_GROUP


def _are_weights(resources: Any) -> bool:
    """Tell whether these are strategies by resource rather than amounts."""
    return isinstance(resources, Mapping) and any(isinstance(one, Mapping) for one in resources.values())
