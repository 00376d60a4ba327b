"""nova's flavors as the requests that nova sends, and their section in the planner file."""

from pathlib import Path

import pytest

from placement.domain.flavors import Flavor, flavor_query
from placement.errors import ConfigurationError
from placement.settings.planner.sections import load_planner

PLAIN = Flavor(vcpus=4, ram=8192, disk=20)


def with_specs(**specs: str) -> Flavor:
    return Flavor(vcpus=4, ram=8192, disk=20, extra_specs={key.replace("__", ":"): it for key, it in specs.items()})


@pytest.mark.parametrize(
    ("flavor", "query"),
    [
        pytest.param(PLAIN, "resources=DISK_GB:20,MEMORY_MB:8192,VCPU:4", id="plain"),
        pytest.param(Flavor(vcpus=1, ram=512), "resources=MEMORY_MB:512,VCPU:1", id="no disk"),
        pytest.param(
            Flavor(vcpus=1, ram=512, disk=10, ephemeral=5, swap=1025),
            "resources=DISK_GB:17,MEMORY_MB:512,VCPU:1",
            id="ephemeral and swap are disk",
        ),
        pytest.param(
            with_specs(hw__cpu_policy="dedicated"), "resources=DISK_GB:20,MEMORY_MB:8192,PCPU:4", id="dedicated"
        ),
        pytest.param(
            with_specs(resources__VCPU="0", resources__PGPU="1"),
            "resources=DISK_GB:20,MEMORY_MB:8192,PGPU:1",
            id="a class is overridden",
        ),
        pytest.param(
            with_specs(trait__HW_A="required", trait__HW_B="forbidden", hw__cpu_thread_policy="isolate"),
            "resources=DISK_GB:20,MEMORY_MB:8192,VCPU:4&required=!HW_B,!HW_CPU_HYPERTHREADING,HW_A",
            id="traits",
        ),
        pytest.param(
            with_specs(resources1__VGPU="1", trait1__HW_A="required", resources_N__PGPU="1", group_policy="isolate"),
            "resources=DISK_GB:20,MEMORY_MB:8192,VCPU:4&resources1=VGPU:1&required1=HW_A&resources_N=PGPU:1"
            "&group_policy=isolate",
            id="groups",
        ),
        pytest.param(
            with_specs(hw__mem_encryption="true"),
            "resources=DISK_GB:20,MEMORY_MB:8192,MEM_ENCRYPTION_CONTEXT:1,VCPU:4",
            id="encrypted memory",
        ),
    ],
)
def test_a_flavor_asks_what_nova_asks(flavor: Flavor, query: str) -> None:
    assert flavor_query(flavor).query == query


def test_what_only_nova_looks_at_is_told() -> None:
    found = flavor_query(with_specs(hw__numa_nodes="2", hw__cpu_policy="mixed", quota__disk_read_iops_sec="9"))
    assert found.without_meaning == ("hw:cpu_policy", "hw:numa_nodes", "quota:disk_read_iops_sec")


def test_an_amount_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="many"):
        flavor_query(with_specs(resources__PGPU="many"))


def section(path: Path, text: str):
    file = path / "planner.yaml"
    file.write_text(text)
    return load_planner(file)


def test_the_planner_file_has_queries_and_flavors(tmp_path: Path) -> None:
    text = "flavors:\n  a: resources=VCPU:1\n  b: {vcpus: 2, ram: 1024, extra_specs: {'resources:PGPU': '1'}}\n"
    assert section(tmp_path, text).flavors == {"a": "resources=VCPU:1", "b": "resources=MEMORY_MB:1024,PGPU:1,VCPU:2"}


def test_private_flavors_are_some_of_the_flavors(tmp_path: Path) -> None:
    text = "private_flavors: [a]\nflavors: {a: resources=VCPU:1, b: resources=VCPU:2}\n"
    assert section(tmp_path, text).private_flavors == {"a"}
    with pytest.raises(ConfigurationError, match="expected the name of a flavor, found 'c'"):
        section(tmp_path, text.replace("[a]", "[a, c]"))


@pytest.mark.parametrize(
    ("flavor", "expected"),
    [("5", "a query string"), ("{cpus: 2}", "one of the keys vcpus"), ("{vcpus: many}", "a whole number")],
)
def test_a_flavor_that_is_none_stops_the_start(tmp_path: Path, flavor: str, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=f"line 2: .*expected {expected}"):
        section(tmp_path, f"flavors:\n  a: {flavor}\n")
