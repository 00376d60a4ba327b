"""Hints for known keys in the wrong place of a planner request: what to write instead."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from marshmallow import ValidationError

from placement.api.validation import Fault, Schema
from placement.domain.device_types import DeviceSettings
from placement.settings.planner.document import HIERARCHY, IMPORT_HINT, SCHEDULER_KEYS
from placement.settings.planner.volcano import profile_of_arguments

SCORING_KEYS = SCHEDULER_KEYS | {"fit", "sra", "proportional", "compactness", "resourceWeight"}
"""Keys about scoring, in Volcano's terms or those of profiles."""

A_PROFILE = {
    "fit": {"weight": 10, "resources": {"PGPU": {"type": "MostAllocated", "weight": 2}}},
    "sra": {"weight": 10, "resources": {"PGPU": 1}},
}
FOR_EACH_RESOURCE = (
    "A profile defines whether to fill or spread each resource: "
    '"profile": {"fit": {"resources": {"PGPU": {"type": "MostAllocated"}, "VCPU": {"type": "LeastAllocated"}}}}.'
)
POD_KEYS = {"apiVersion", "kind", "metadata", "spec"}
AROUND_A_POD = 'A pod, or what has its template, goes under the key pod: {{"pod": {pod}}}.'
LONGEST_LINE = 300


class HintingSchema(Schema):
    """A schema that suggests what to write instead of certain unknown keys."""

    def handle_error(self, error: ValidationError, data: Any, **_options: Any) -> None:
        """Replace all messages about unknown keys by a hint, if there is one."""
        for key, hint in _hints(data):
            if isinstance(error.messages, dict) and key not in self.fields:
                fitting = {name: messages for name, messages in error.messages.items() if name in self.fields}
                error.messages = {**fitting, key: [Fault(hint, "additionalProperties")]}
                return


def _hints(body: Any) -> Iterator[tuple[str, str]]:
    for key, value in body.items() if isinstance(body, Mapping) else ():
        if key in SCORING_KEYS or (key == "resources" and _are_weights(value)):
            yield key, profile_hint(body)
        elif key in {"scorer", "scorers"}:
            yield key, FOR_EACH_RESOURCE
        elif key == "resources":
            yield key, _line_for_resources(value)
        elif key in POD_KEYS:
            yield key, AROUND_A_POD.format(pod=_line({name: body[name] for name in body if name in POD_KEYS}))
        elif key.startswith(HIERARCHY):
            yield key, f"Queues stand in planner.yaml: {IMPORT_HINT}"


def profile_hint(pasted: Mapping[str, Any]) -> str:
    """Return the profile that arguments of Volcano's scheduler mean, in a sentence; an example if they mean none."""
    profile = profile_of_arguments(pasted, DeviceSettings()) or A_PROFILE
    line = f'"profile": "NAME" of planner.yaml, or "profile": {orjson.dumps(profile).decode()}'
    return f"A profile defines how candidates are scored: {line}. {IMPORT_HINT}"


def _line_for_resources(resources: Any) -> str:
    """Return what to write instead of resources that are not in a group, with what they are."""
    if isinstance(resources, Mapping) and resources.keys() & {"requests", "limits"}:
        return AROUND_A_POD.format(pod=_line({"spec": {"containers": [{"resources": resources}]}}))
    asked = resources if isinstance(resources, Mapping) and resources else {"VCPU": 2}
    return f'A group requests resources: "groups": {_line({"": {"resources": asked}})}.'


def _line(value: Any) -> str:
    """Return a value in one line of JSON, unless that is long."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= LONGEST_LINE else "{...}"


def _are_weights(resources: Any) -> bool:
    """Tell whether these are strategies by resource rather than amounts."""
    entries = resources.values() if isinstance(resources, Mapping) else ()
    return any(isinstance(entry, Mapping) and entry.keys() & {"type", "weight"} for entry in entries)
