"""The worked examples of Placement's guide "Modeling with Provider Trees": clouds, queries and their candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.clouds import Provider, trees

TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

Candidate = Mapping[str, str]
"""{provider: "CLASS:amount,CLASS:amount"}"""


@dataclass(frozen=True, slots=True)
class Example:
    """A query, in which <NAME> stands for a uuid, and exactly the candidates it has."""

    says: str
    cloud: Sequence[Provider]
    query: str
    candidates: Sequence[Candidate] = ()


def _examples(rows: Sequence[Mapping[str, Any]]) -> list[Example]:
    return [Example(**{**row, "cloud": trees(TABLE["clouds"][row["cloud"]])}) for row in rows]


EXAMPLES, REFUSED, DEFECTS = (_examples(TABLE[part]) for part in ("examples", "refused", "defects"))
