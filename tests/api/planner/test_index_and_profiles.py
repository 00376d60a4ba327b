"""GET /planner/v1 and its profiles, and what applies to every resource of the planner."""

from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from flask import Flask

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile, Proportional, Sra
from placement.app import create_app
from placement.settings import PlannerApiSettings, PlannerSettings, RankingSettings
from placement.settings.planner.sections import load_planner
from tests.api.conftest import Api
from tests.claims import detail_of

pytestmark = pytest.mark.any_database

EVERYTHING = PlannerSettings(
    exclusive={"numa": "CUSTOM_NUMA_LOCK", "device": "CUSTOM_DEVICE_LOCK"},
    levels={"socket": "CUSTOM_SOCKET", "numa": "HW_NUMA_ROOT"},
    profiles={
        "plain": RankingProfile("plain", Profile(), 0),
        "ai": RankingProfile(
            "ai",
            Profile(
                fit=Fit({"CUSTOM_GPU_*": Preference("MostAllocated", 0.5), "VCPU": Preference("LeastAllocated")}, 2.5),
                sra=Sra({"PGPU": 0.1, "CUSTOM_GPU_*": 2}, mode="upstream"),
                proportional=Proportional({"PGPU": {"VCPU": 8, "MEMORY_MB": 0.5}}, exempt="own", mode="filter"),
            ),
            3,
        ),
    },
    default_profile="ai",
    aggregates={
        "zone": {"eu-1": ("3c9a1f0e-5b7d-4e21-9a63-0d4f8b1c2e01",)},
        "rack": {"b12": ("a4c6e8f0-1b3d-4f57-9a7c-5e7f9b1d3c04",)},
    },
)


def with_settings(app: Flask, **groups: object) -> Api:
    """Return a client of a server on the same database, with other settings."""
    return Api(create_app(replace(app.extensions["placement"].settings, **groups)))


def test_the_planner_says_what_it_serves_and_whether_it_ranks(app: Flask) -> None:
    answer = with_settings(app, ranking=RankingSettings(enabled=False, near_equal=2.5)).get("/planner/v1")
    assert answer.status_code == 200
    assert answer.json["version"] == "v1"
    assert answer.json["ranking"] == {"enabled": False, "near_equal": 2.5, "default_profile": "default"}
    assert answer.json["resources"]["/planner/v1/profiles"] == ["GET"]


def test_without_a_planner_file_the_built_in_profile_is_listed(api: Api) -> None:
    assert api.get("/planner/v1/profiles").json == {
        "default_profile": "default",
        "levels": {"numa": "HW_NUMA_ROOT", "pcie": "CUSTOM_HW_PCIE_SWITCH"},
        "profiles": {
            "default": {
                "fit": {
                    "weight": 10,
                    "resources": {
                        "VCPU": {"type": "LeastAllocated", "weight": 1},
                        "MEMORY_MB": {"type": "LeastAllocated", "weight": 1},
                        "PGPU": {"type": "MostAllocated", "weight": 4},
                        "VGPU": {"type": "MostAllocated", "weight": 4},
                        "FPGA": {"type": "MostAllocated", "weight": 4},
                        "CUSTOM_GPU_*": {"type": "MostAllocated", "weight": 4},
                        "CUSTOM_PCI_10DE_*": {"type": "MostAllocated", "weight": 4},
                        "CUSTOM_PCI_1002_*": {"type": "MostAllocated", "weight": 4},
                    },
                },
                "sra": {"weight": 30, "mode": "unneeded", "resources": {"PGPU": 1, "VGPU": 1, "FPGA": 1}},
                "compactness": {"weight": 10},
            }
        },
        "exclusive": {"pcie": "CUSTOM_PCIE_LOCK", "device": "CUSTOM_DEVICE_LOCK"},
        "devices": {
            "types": {
                "gpu": {
                    "class": "PGPU",
                    "whole": 1,
                    "label_prefix": "CUSTOM_GPU_LABEL_",
                    "resources": {
                        "nvidia.com/gpu": 1,
                        "amd.com/gpu": 1,
                        "koordinator.sh/gpu": 100,
                        "koordinator.sh/gpu-core": 100,
                        "koordinator.sh/gpu-memory-ratio": 100,
                    },
                    "shared": "koordinator.sh/gpu.shared",
                },
                "rdma": {
                    "class": "CUSTOM_RDMA_SHARE",
                    "whole": 100,
                    "virtual_function": "SRIOV_NET_VF",
                    "label_prefix": "CUSTOM_NIC_LABEL_",
                    "resources": {"koordinator.sh/rdma": 100},
                },
                "fpga": {
                    "class": "FPGA",
                    "whole": 1,
                    "label_prefix": "CUSTOM_FPGA_LABEL_",
                    "resources": {"koordinator.sh/fpga": 100},
                },
            },
            "base": {"cards": "PGPU", "memory": "CUSTOM_GPU_MEMORY_MB", "cores": "CUSTOM_GPU_CORE", "cpu": "VCPU"},
            "host": {"cpu": "VCPU", "memory": "MEMORY_MB", "ephemeral-storage": "DISK_GB"},
            "labels": {},
            "same_pcie": "pcie",
            "same_numa": "numa",
        },
        "aggregates": {},
    }


def test_what_is_listed_is_a_planner_file_that_says_the_same(app: Flask, tmp_path: Path) -> None:
    listed = with_settings(app, planner=EVERYTHING).get("/planner/v1/profiles").json
    file = tmp_path / "planner.yaml"
    file.write_bytes(orjson.dumps(listed, option=orjson.OPT_INDENT_2))
    assert load_planner(file) == EVERYTHING


def test_levels_are_listed_from_the_outside_in(app: Flask) -> None:
    listed = with_settings(app, planner=EVERYTHING).get("/planner/v1/profiles")
    assert list(orjson.loads(listed.data)["levels"]) == ["socket", "numa"]


@pytest.mark.parametrize("path", ["/planner/v1", "/planner/v1/profiles"])
class TestEveryResource:
    def test_answers_the_same_at_every_microversion(self, api: Api, path: str) -> None:
        answers = [api.get(path, version=version) for version in ("1.0", "1.14", "1.39", "latest")]
        assert {(answer.status_code, answer.data) for answer in answers} == {(200, answers[0].data)}
        assert {frozenset(answer.headers.keys()) for answer in answers} == {frozenset(answers[0].headers.keys())}

    def test_is_not_there_where_the_planner_is_switched_off(self, app: Flask, path: str) -> None:
        answer = with_settings(app, planner_api=PlannerApiSettings(enabled=False)).get(path)
        assert detail_of(answer, 404) == "The resource could not be found."

    def test_wants_credentials(self, api: Api, path: str) -> None:
        assert api.app.test_client().get(path).status_code == 401

    def test_is_for_administrators_and_services(self, api: Api, path: str) -> None:
        def status(roles: str) -> int:
            return api.get(path, headers={"x-auth-token": "user:project", "x-roles": roles}).status_code

        assert [status(roles) for roles in ("admin", "service", "member,reader")] == [200, 200, 403]

    def test_refuses_other_methods(self, api: Api, path: str) -> None:
        answer = api.delete(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")

    def test_refuses_a_client_that_does_not_take_json(self, api: Api, path: str) -> None:
        assert api.get(path, headers={"accept": "image/png"}).status_code == 406


def test_the_version_document_lists_nothing_of_the_planner(api: Api) -> None:
    assert "planner" not in api.get("/").text


def test_other_paths_below_planner_are_unknown(api: Api) -> None:
    assert [api.get(path).status_code for path in ("/planner", "/planner/v1/", "/planner/v1/x", "/planner/v2")] == [
        404,
        404,
        404,
        404,
    ]
