"""The server accepts the examples of the pages about planner requests."""

import json
import re
from pathlib import Path

from tests.api.conftest import Api
from tests.claims import ask
from tests.planner_hosts import CANDIDATES, register


def documented() -> list[dict]:
    """Return the bodies that the documentation shows for candidates."""
    reference = Path(__file__).parents[3] / "docs" / "reference"
    text = "".join([(reference / f"{page}.md").read_text() for page in ("planner-requests", "nested-groups", "pods")])
    blocks = re.findall(r"(?m)^    \{(?:.*\n(?:    .*\n)*)", text)
    return [json.loads(line) for block in blocks for line in documents(block)]


def documents(block: str) -> list[str]:
    """Return the documents in a block: one, or one per line."""
    lines = block.splitlines()
    return lines if all(line.endswith("}") for line in lines) else [block]


def test_what_the_documentation_shows_is_understood(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU", "CUSTOM_GPU_A100"])
    bodies = [body for body in documented() if "consumer" not in body]
    assert len(bodies) == 5
    for body in bodies:
        assert ask(levels, "POST", CANDIDATES, body=body)["allocation_requests"], body
