"""Requests as people and nova write them, in forms, commands and flavors, become query strings."""

import pytest

from placement.api.query import Query
from placement.errors import Invalid
from placement.formats.flavors import Flavor, flavor_query
from placement.formats.pasting import pasted
from placement.ui.request_form import FormFields, form_fields, query_string
from tests.worked_flavors import AT_ROOT, WORKED

TABLE = """\
| disk                       | 0                                                         |
| name                       | gpu.large                                                 |
| properties                 | resources:PGPU='1', resources_NET:SRIOV_NET_VF='2', trait:HW_NUMA_ROOT='required', \
trait:CUSTOM_OLD='forbidden', |
|                            | group_policy='none'                                       |
| ram                        | 4096                                                      |
| vcpus                      | 8                                                         |
"""
SHELL = """\
os_flv_ext_data_ephemeral="5"
properties="hw:cpu_policy='mixed', hw:cpu_dedicated_mask='0,1', resources:PGPU='1'"
ram="4096"
vcpus="8"
"""
JSON = '{"name": "a", "ram": 512, "vcpus": 2, "swap": "", "properties": {"os:secure_boot": "required"}}'
LOG = '"GET /placement/allocation_candidates?limit=1000&resources=VCPU%3A1%2CMEMORY_MB%3A512 HTTP/1.1" status: 200'
CURL = "curl -s -H 'X-Auth-Token: t' 'http://host/placement/allocation_candidates?resources=VCPU:1&limit=3'"
COMMAND = "openstack allocation candidate list --resource VCPU=8 --resource MEMORY_MB=1 --forbidden CUSTOM_X --limit 3"

PASTED = {
    "resources=VCPU:1": "resources=VCPU:1",
    "  http://host/any?resources=VCPU:1 ": "resources=VCPU:1",
    LOG: "limit=1000&resources=VCPU%3A1%2CMEMORY_MB%3A512",
    CURL: "resources=VCPU:1&limit=3",
    COMMAND: "required=!CUSTOM_X&limit=3&resources=VCPU:8,MEMORY_MB:1",
    TABLE: "resources=MEMORY_MB:4096,PGPU:1,VCPU:8&required=HW_NUMA_ROOT,!CUSTOM_OLD&resources_NET=SRIOV_NET_VF:2"
    f"&group_policy=none{AT_ROOT}",
    SHELL: f"resources=DISK_GB:5,MEMORY_MB:4096,PCPU:2,PGPU:1,VCPU:6{AT_ROOT}",
    JSON: f"resources=MEMORY_MB:512,VCPU:2&required=COMPUTE_SECURITY_UEFI_SECURE_BOOT{AT_ROOT}",
    "vcpus=8 ram=512": f"resources=MEMORY_MB:512,VCPU:8{AT_ROOT}",
    "vcpus: 2, resources:PGPU=1": f"resources=PGPU:1,VCPU:2{AT_ROOT}",
    "gpu.small": "resources=PGPU:1",
    "resources=vcpu:8,memory_mb:1&required=in:hw_numa_root,!custom_old": "resources=VCPU:8,MEMORY_MB:1"
    "&required=in:HW_NUMA_ROOT,!CUSTOM_OLD",
    "resources_a=vcpu:1&member_of=in:0a,0b&in_tree=0a": "resources_a=VCPU:1&member_of=in:0a,0b&in_tree=0a",
    "resources=<b>x</b>:1": "resources=<b>x</b>:1",
    "limit=3": "limit=3",
    "": "",
}


@pytest.mark.parametrize("text", PASTED)
def test_what_is_pasted_is_understood(text: str):
    assert pasted(text, {"gpu.small": "resources=PGPU:1"}) == PASTED[text]


@pytest.mark.parametrize("text", ['{"a": 1}', "openstack allocation candidate list --resource 'VCPU", "gpu.smal"])
def test_what_is_neither_a_query_nor_a_flavor_is_refused_with_a_similar_name(text: str):
    with pytest.raises(Invalid, match="no flavor in planner") as refusal:
        pasted(text, {"gpu.small": "resources=PGPU:1"})
    assert ("Did you mean" in refusal.value.message) == (text == "gpu.smal")


def test_a_flavor_that_nova_refuses_is_refused():
    with pytest.raises(Invalid, match="nova refuses hw:cpu_policy=any"):
        pasted("vcpus=8 hw:cpu_policy='any'", {})


def fields_of(form: FormFields) -> dict[str, list[str]]:
    """Return what a browser sends for an unchanged form."""
    groups = [form.unsuffixed, *form.groups]
    names = ("suffix", "resources", "required", "member_of", "in_tree")
    sent = {name: [getattr(group, name) for group in groups] for name in names}
    for name in ("root_required", "same_subtree", "group_policy", "limit"):
        sent[name] = [getattr(form, name)]
    return sent


@pytest.mark.parametrize(
    "query",
    [
        "resources=VCPU:2,MEMORY_MB:512",
        "resources=VCPU:2&required=HW_NUMA_ROOT,!CUSTOM_OLD&required=in:CUSTOM_A,CUSTOM_B",
        "resources_GPU=PGPU:1&required_GPU=CUSTOM_A100&resources_N=VCPU:2&same_subtree=_GPU,_N&group_policy=isolate",
        "resources1=VCPU:1&member_of1=in:7f0b1f8e-3c5d-4c0e-9f1a-2f6f6e2f7a02,!8&in_tree1=9&limit=5&root_required=A",
    ],
)
def test_a_form_that_a_query_filled_in_and_nobody_changed_stands_for_that_query(query: str):
    form = form_fields(Query.parse(query.encode()))
    assert sorted(Query.parse(query_string(fields_of(form)).encode()).pairs) == sorted(
        Query.parse(query.encode()).pairs
    )


def test_blanks_and_equals_signs_are_what_people_write():
    fields = {
        "suffix": ["", ""],
        "resources": ["VCPU = 2, MEMORY_MB=512", "PGPU:1"],
        "required": [" A, !B  in:C,D", ""],
    }
    assert query_string(fields) == "resources=VCPU:2,MEMORY_MB:512&required=A,!B&required=in:C,D&resources_1=PGPU:1"


def test_a_field_cannot_smuggle_in_another_parameter():
    query = query_string({"suffix": [""], "resources": ["VCPU:1&limit=5"], "in_tree": ["x&required=A"]})
    assert Query.parse(query.encode()).pairs == [("resources", "VCPU:1&limit:5"), ("in_tree", "x&required=A")]


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
