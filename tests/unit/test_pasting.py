"""Pasted requests become query strings."""

import pytest

from placement.domain.pasting import pasted
from placement.errors import Invalid
from tests.worked_flavors import AT_ROOT

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
    '{"a": 1}': '{"a": 1}',
    "gpu.small": "resources=PGPU:1",
    "resources=vcpu:8,memory_mb:1&required=in:hw_numa_root,!custom_old": "resources=VCPU:8,MEMORY_MB:1"
    "&required=in:HW_NUMA_ROOT,!CUSTOM_OLD",
    "resources_a=vcpu:1&member_of=in:0a,0b&in_tree=0a": "resources_a=VCPU:1&member_of=in:0a,0b&in_tree=0a",
    "resources=<b>x</b>:1": "resources=<b>x</b>:1",
    "limit=3": "limit=3",
    "what is this": "what is this",
    "openstack allocation candidate list --resource 'VCPU": "openstack allocation candidate list --resource 'VCPU",
    "": "",
}


@pytest.mark.parametrize("text", PASTED)
def test_what_is_pasted_is_understood(text: str):
    assert pasted(text, {"gpu.small": "resources=PGPU:1"}) == PASTED[text]


def test_a_flavor_that_nova_refuses_is_refused():
    with pytest.raises(Invalid, match="nova refuses hw:cpu_policy=any"):
        pasted("vcpus=8 hw:cpu_policy='any'", {})
