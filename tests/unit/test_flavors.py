"""nova's flavors as the requests that nova sends, and their section in the planner file."""

from pathlib import Path

import pytest

from placement.domain.flavors import Flavor, flavor_query
from placement.errors import ConfigurationError
from placement.settings.planner.sections import load_planner
from tests.worked_flavors import WORKED


@pytest.mark.parametrize(("flavor", "query"), [row[1:] for row in WORKED], ids=[row[0] for row in WORKED])
def test_a_flavor_asks_what_nova_asks(flavor: Flavor, query: str | None) -> None:
    if query is None:
        with pytest.raises(ValueError, match=r"^(nova|Placement) refuses"):
            flavor_query(flavor)
    else:
        assert flavor_query(flavor).query == query


def test_what_only_nova_looks_at_is_named() -> None:
    specs = {"hw:numa_nodes": "2", "hw:cpu_policy": "dedicated", "resources:PGPU": "many", "hw:tpm_model": "tpm-tis"}
    without = flavor_query(Flavor(4, 8192, extra_specs=specs)).without_meaning
    assert without == ("hw:numa_nodes", "hw:tpm_model", "resources:PGPU")


def section(path: Path, text: str):
    file = path / "planner.yaml"
    file.write_text(text)
    return load_planner(file)


def test_the_planner_file_has_queries_and_flavors(tmp_path: Path) -> None:
    text = "flavors:\n  a: resources=VCPU:1\n  b: {vcpus: 2, ram: 1024, extra_specs: {'resources:PGPU': '1'}}\n"
    flavors = section(tmp_path, f"flavor_root_required: [OWNER_NOVA]\n{text}").flavors
    asked = "resources=MEMORY_MB:1024,PGPU:1,VCPU:2&root_required=OWNER_NOVA,!COMPUTE_STATUS_DISABLED"
    assert flavors == {"a": "resources=VCPU:1", "b": asked}


def test_private_flavors_are_some_of_the_flavors(tmp_path: Path) -> None:
    text = "private_flavors: [a]\nflavors: {a: resources=VCPU:1, b: resources=VCPU:2}\n"
    assert section(tmp_path, text).private_flavors == {"a"}
    with pytest.raises(ConfigurationError, match="expected the name of a flavor, found 'c'"):
        section(tmp_path, text.replace("[a]", "[a, c]"))


@pytest.mark.parametrize(
    ("flavor", "expected"),
    [
        ("5", "a query string"),
        ("{cpus: 2}", "one of the keys vcpus"),
        ("{vcpus: many}", "a whole number"),
        ("{vcpus: 1, extra_specs: {hw:cpu_policy: mixed}}", r"a flavor that nova boots \(nova refuses hw:cpu_policy"),
    ],
)
def test_a_flavor_that_is_none_stops_the_start(tmp_path: Path, flavor: str, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=f"line 2: .*expected {expected}"):
        section(tmp_path, f"flavors:\n  a: {flavor}\n")
