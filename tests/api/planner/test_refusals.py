"""POST /planner/v1/candidates: refused requests, with the path of the error."""

import pytest

from tests.api.conftest import Api
from tests.claims import detail_of
from tests.planner_hosts import CANDIDATES

pytestmark = pytest.mark.any_database

A = {"_A": {"resources": {"PGPU": 1}}}
GPU_HINT = "device_allocate_hint.gpu"


def refused(api: Api, body: object) -> str:
    """Return the sentence with which a body is refused."""
    return str(detail_of(api.post(CANDIDATES, body)).splitlines()[-1])


def group(**changed: object) -> dict[str, object]:
    return {"groups": {"_A": {**A["_A"], **changed}}}


def hint(**said: object) -> dict[str, object]:
    return {"requests": {"gpu": 1}, "device_allocate_hint": {"gpu": said}}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "body: There must be groups, a tree, paths, or requests of devices."),
        (
            group(resources={"PGPU": True}),
            "groups._A.resources.PGPU: True is not an amount; write a whole number, or bytes such as 8Gi",
        ),
        (group(resources={"CUSTOM_NO": 1}), "groups._A.resources.CUSTOM_NO: There is no resource class CUSTOM_NO."),
        (group(required=["CUSTOM_NO"]), "groups._A.required: There is no trait CUSTOM_NO."),
        (
            {"groups": A, "root_required": ["HW_NUMA_ROOT", "!HW_NUMA_ROOT"]},
            "root_required: Traits are required and forbidden: HW_NUMA_ROOT.",
        ),
        (group(count=0), 'groups._A.count: 0 is not a number from 1 to 1000, "all" or "per-subtree"'),
        (
            group(count="per-subtree"),
            'groups._A.count: "per-subtree" is for a group that one affinity has beside its primary.',
        ),
        (
            {"groups": A, "within": [{"groups": ["_B"], "level": "numa"}]},
            "within[0].groups: There is no group '_B'.",
        ),
        (
            {"groups": A, "within": [{"groups": ["_A"], "level": "rack"}]},
            "within[0].level: There is no level 'rack'; there are numa, pcie, and traits.",
        ),
        (
            {"groups": A, "within": [{"groups": ["_A"], "level": f"CUSTOM_{n}"} for n in range(65)]},
            "within: A list of 65 items is too long, the limit is 64",
        ),
        ({"groups": A, "profile": "no"}, "profile: There is no profile 'no'; there are default."),
        (
            {"requests": {"koordinator.sh/rdma": 150}},
            "requests: More than one device of the type rdma is requested in multiples of 100, not 150.",
        ),
        (
            {"requests": {"tpu": 1}},
            "requests.tpu: The name is neither a resource of a device type nor a resource class.",
        ),
        (hint(vfSelector={}), f"{GPU_HINT}.vfSelector: The device type gpu has no virtual functions."),
        (
            {"paths": {"rack/0/gpu/0/cards": 1}},
            (
                "paths.rack/0/gpu/0: There is no level 'rack'; there are numa, pcie. "
                "Name the trait of such providers under levels in planner.yaml: rack: CUSTOM_..."
            ),
        ),
        (
            {"tree": {"numa": {"A/B": {"PGPU": 1}}}},
            "tree: 'numa/A/B': a name is empty, has a slash or is too deep",
        ),
        (
            {"groups": A, "colour": 1},
            "body: Additional properties are not allowed ('colour' was unexpected)",
        ),
    ],
)
def test_bad_requests_are_refused_with_the_path_of_the_fault(api: Api, body, sentence) -> None:
    assert refused(api, body) == sentence
