"""The example that mirrors a cloud shows what the server shows, whatever happens."""

import ast
import random
from types import ModuleType
from typing import Any

import pytest

from tests import claims
from tests.api.conftest import Api
from tests.claims import claimed, entry, make_provider, new_uuid, set_inventories
from tests.example_scripts import DIRECTORY
from tests.example_scripts import example as loaded


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return loaded("mirror")


def change(api: Api, choice: random.Random, providers: list[str], consumers: list[str]) -> None:
    provider = choice.choice(providers)
    path = f"/resource_providers/{provider}"
    generation = api.get(path).get_json()["generation"]
    kind = choice.choice(["make", "claim", "claim", "end", "traits", "aggregates", "stock", "rename", "delete"])
    if kind == "make":
        providers.append(make_provider(api, VCPU=choice.randint(1, 9)))
    elif kind == "claim":
        consumers.append(new_uuid())
        api.put(f"/allocations/{consumers[-1]}", entry({provider: {"VCPU": choice.randint(1, 3)}}))
    elif kind == "end" and consumers:
        api.delete(f"/allocations/{consumers.pop()}")
    elif kind == "traits":
        traits = choice.sample(["HW_CPU_X86_AVX2", "HW_NUMA_ROOT", "STORAGE_DISK_SSD"], choice.randint(0, 3))
        api.put(f"{path}/traits", {"resource_provider_generation": generation, "traits": traits})
    elif kind == "aggregates":
        aggregates = [new_uuid() for _ in range(choice.randint(0, 2))]
        body = {"resource_provider_generation": generation, "aggregates": aggregates}
        api.put(f"{path}/aggregates", body)
    elif kind == "stock":
        inventories = {"VCPU": {"total": choice.randint(1, 20), "allocation_ratio": 1.5}, "DISK_GB": {"total": 7}}
        api.put(f"{path}/inventories", {"resource_provider_generation": generation, "inventories": inventories})
    elif kind == "rename":
        parent = choice.choice([None, *providers])
        api.put(path, {"name": new_uuid(), "parent_provider_uuid": parent})
    elif kind == "delete" and len(providers) > 3 and api.delete(path).status_code == 204:
        providers.remove(provider)


@pytest.mark.parametrize("seed", range(3))
def test_a_mirror_that_follows_is_what_the_server_says(api: Api, example: ModuleType, seed: int) -> None:
    def get(path: str) -> tuple[Any, Any]:
        answer = api.get(path)
        assert answer.status_code == 200, answer.text
        return answer.get_json(), answer.headers

    choice, consumers = random.Random(seed), list[str]()
    providers = [make_provider(api, VCPU=8) for _ in range(3)]
    mirror, cursor = example.snapshot(get)
    for _ in range(6):
        for _ in range(10):
            change(api, choice, providers, consumers)
        cursor = example.follow(get, mirror, cursor)
        fresh, at = example.snapshot(get)
        assert mirror == fresh
        assert example.follow(get, fresh, at) == cursor


def test_a_mirror_follows_classes_and_traits_that_are_renamed_and_go_and_whose_ids_return(
    api: Api, example: ModuleType
) -> None:
    def get(path: str) -> tuple[Any, Any]:
        answer = api.get(path)
        return answer.get_json(), answer.headers

    provider = make_provider(api, VCPU=8)
    mirror, cursor = example.snapshot(get)
    late, start = example.snapshot(get)
    for name in ("CUSTOM_A", "CUSTOM_B"):
        api.put(f"/resource_classes/{name}")
        api.put(f"/traits/{name}")
        set_inventories(api, provider, **{"VCPU": 8, name: 5})
        claims.change(api, provider, "traits", [name])
        consumer = claimed(api, {provider: {name: 3}})
        again = f"{name}_AGAIN"
        assert api.put(f"/resource_classes/{name}", {"name": again}, version="1.6").status_code == 200
        cursor = example.follow(get, mirror, cursor)
        assert mirror == example.snapshot(get)[0]
        assert mirror[provider]["usages"][again] == 3
        api.delete(f"/allocations/{consumer}")
        set_inventories(api, provider, VCPU=8)
        claims.change(api, provider, "traits", [])
        assert api.delete(f"/resource_classes/{again}").status_code == 204
        assert api.delete(f"/traits/{name}").status_code == 204
    for behind, reached in ((mirror, cursor), (late, start)):
        example.follow(get, behind, reached)
        assert behind == example.snapshot(get)[0]


def test_it_has_fewer_than_fifty_lines_of_code():
    tree = ast.parse((DIRECTORY / "mirror.py").read_text())
    told = [
        node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node)
    ]
    for node in told:
        node.body = node.body[1:]
    assert len({node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr)}) < 50
