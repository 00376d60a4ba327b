"""Fair shares over HTTP for tasks larger than one unit: the cases of the algorithm's tests, under the same names.

``test_fair_claims`` shows that rewording a request does not get it past the gate.
"""

import uuid
from collections.abc import Mapping, Sequence

import pytest
from flask import Flask

from placement.allocators.fair_share import Queue, tree_of
from placement.settings.planner.values import FairShareSettings
from tests.api.planner.test_fair_share import ask, pending, served
from tests.clouds import Cloud, provider
from tests.stored_clouds import stored

pytestmark = pytest.mark.any_database


class Cell:
    """A server with queues of equal weight, and a cloud of CPUs and GPUs."""

    def __init__(self, app: Flask, queues: Mapping[str, Sequence[str]], **totals: int) -> None:
        leaves = [Queue(path, (None,) * (path.count("/") + 1), tuple(members)) for path, members in queues.items()]
        self.api = served(app, FairShareSettings(classes=("VCPU", "PGPU"), queues=tree_of(leaves), keep_s=0))
        self._cloud: Cloud = stored(self.api.app, *[provider(name, **{name: much}) for name, much in totals.items()])

    def takes(self, project: str, name: str, *amounts: int) -> list[str]:
        """Create consumers of a project, each with the given amount of a class, and return their uuids."""
        uuids = [str(uuid.uuid4()) for _amount in amounts]
        owner = {"project_id": project, "user_id": "u", "consumer_generation": None, "consumer_type": "INSTANCE"}
        body = {
            one: {"allocations": {self._cloud.providers[name]: {"resources": {name: amount}}}, **owner}
            for one, amount in zip(uuids, amounts, strict=True)
        }
        assert self.api.post("/allocations", body).status_code == 204
        return uuids

    def next(self, **tasks: tuple[dict[str, int], int]) -> str:
        """Return which of the waiting projects is served next."""
        return ask(self.api, "order", {"pending": pending(**tasks)})["order"][0]["project_id"]

    def reclaimed(self, project: str, gpus: int, **body: object) -> dict:
        """Return the answer when a project claims GPUs."""
        claimant = {"project_id": project, "resources": {"PGPU": gpus}}
        return ask(self.api, "reclaim", {"claimant": claimant, **body})


def given(answer: dict) -> set[str]:
    return {one["consumer_uuid"] for one in answer["give_back"]}


GPU = {"PGPU": 1}
SEED = {"n/n1": ["p1"], "n/n2/n21": ["p21"], "n/n2/n22": ["p22"]}


@pytest.mark.parametrize(("cpus", "size"), [(10, 3), (1004, 8)])
def test_saturation_a_rest_too_small_for_anybody_counts_as_exhausted(app: Flask, cpus: int, size: int) -> None:
    cell = Cell(app, SEED, VCPU=cpus, PGPU=10)
    cell.takes("p1", "PGPU", *[1] * 5)
    cell.takes("p21", "VCPU", *[size] * (cpus // size))
    cell.takes("p22", "PGPU", *[1] * 4)
    assert cell.next(p1=(GPU, 9), p21=({"VCPU": size}, 9), p22=(GPU, 9)) == "p22"


def test_who_holds_nothing_counts_in_the_minimum(app: Flask) -> None:
    cell = Cell(app, {**SEED, "n/n3": ["p3"]}, VCPU=100, PGPU=100)
    cell.takes("p1", "PGPU", *[1] * 30)
    cell.takes("p21", "VCPU", 40)
    cell.takes("p3", "PGPU", 69)
    assert cell.next(p1=(GPU, 9), p21=({"VCPU": 1}, 9), p22=(GPU, 9), p3=(GPU, 9)) == "p22"


def test_reclaim_takes_nothing_from_a_queue_below_its_entitlement(app: Flask) -> None:
    cell = Cell(app, {"n/A/a1": ["a1"], "n/A/a2": ["a2"], "n/B/b": ["b"]}, PGPU=100)
    rich = cell.takes("a1", "PGPU", *[2] * 30)
    cell.takes("a2", "PGPU", 4)
    cell.takes("b", "PGPU", *[2] * 18)
    waiting = {"pending": pending(a1=(GPU, 1), b=(GPU, 1))}
    for claimant, decides in (("a2", ("n/A/a2", "n/A/a1")), ("b", ("n/B", "n/A"))):
        answer = cell.reclaimed(claimant, 4, **waiting)
        assert (answer["feasible"], len(answer["give_back"])) == (True, 2)
        assert given(answer) <= {*rich}
        assert [(one["claimant"]["path"], one["giver"]["path"]) for one in answer["levels"]] == [decides]


def test_reclaim_finds_sixty_small_ones_beside_a_large_one_that_may_not_go(app: Flask) -> None:
    cell = Cell(app, {"n/poor": ["poor"], "n/rich": ["rich"]}, PGPU=1000)
    small = cell.takes("rich", "PGPU", *[1] * 600)
    (large,) = cell.takes("rich", "PGPU", 400)
    answer = cell.reclaimed("poor", 60, values={large: 9}, keep=[large])
    assert (answer["feasible"], len(answer["give_back"])) == (True, 60)
    assert given(answer) <= {*small}


def test_preempt_takes_what_is_of_equal_priority_where_the_lowest_first_would_not_do(app: Flask) -> None:
    cell = Cell(app, {"n/q": ["ann", "bob"]}, PGPU=10)
    (own,) = cell.takes("ann", "PGPU", 2)
    low, same, rest = cell.takes("bob", "PGPU", 1, 3, 4)
    answer = cell.reclaimed("ann", 3, priority=2, values={low: 1, same: 2, rest: 9, own: 9})
    assert given(answer) == {same}
