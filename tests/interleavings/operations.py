"""The writes of operations.yaml, as requests about a scene."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.claims import entry
from tests.interleavings.scene import Scene
from tests.planner_hosts import consumer

OPERATIONS: Mapping[str, Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
LABEL = re.compile("<(name of |generation of |)([a-z]+)>")


class Request(NamedTuple):
    """A request to send."""

    method: str
    path: str
    body: object = None
    version: str = "1.39"


def request_of(name: str, scene: Scene) -> Request:
    """Return the request of an operation."""
    written = OPERATIONS[name]
    method, path = LABEL.sub(lambda label: scene[label[2]], written["send"]).split()
    return Request(method, path, _filled(written.get("body"), scene), written.get("version", "1.39"))


def _filled(written: Any, scene: Scene) -> Any:
    """Return a part of a body with values for its labels."""
    match written:
        case str() if label := LABEL.fullmatch(written):
            values: dict[str, Callable[[str], Any]] = {
                "": scene.__getitem__,
                "name of ": scene.name,
                "generation of ": scene.generations.__getitem__,
            }
            return values[label[1]](label[2])
        case list():
            return [_filled(part, scene) for part in written]
        case {"shares": shares, **more}:
            return entry(_filled(shares, scene), **_filled(more, scene))
        case {"consumer": str(label)}:
            return consumer(uuid=_filled(label, scene))
        case dict():
            return {_filled(key, scene): _filled(part, scene) for key, part in written.items()}
    return written
