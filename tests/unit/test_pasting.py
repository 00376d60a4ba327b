"""Pasted requests become query strings."""

import pytest

from placement.ui.pasting import pasted

TABLE = """\
| disk                       | 0                                                         |
| name                       | gpu.large                                                 |
| properties                 | resources:PGPU='1', resources_NET:SRIOV_NET_VF='2', trait:HW_NUMA_ROOT='required', \
trait:CUSTOM_OLD='forbidden', group_policy='none' |
| ram                        | 4096                                                      |
| vcpus                      | 8                                                         |
"""
LOG = '"GET /placement/allocation_candidates?limit=1000&resources=VCPU%3A1%2CMEMORY_MB%3A512 HTTP/1.1" status: 200'
CURL = "curl -s -H 'X-Auth-Token: t' 'http://host/placement/allocation_candidates?resources=VCPU:1&limit=3'"
COMMAND = "openstack allocation candidate list --resource VCPU=8 --resource MEMORY_MB=1 --forbidden CUSTOM_X --limit 3"

PASTED = {
    "resources=VCPU:1": "resources=VCPU:1",
    "  http://host/any?resources=VCPU:1 ": "resources=VCPU:1",
    LOG: "limit=1000&resources=VCPU%3A1%2CMEMORY_MB%3A512",
    CURL: "resources=VCPU:1&limit=3",
    COMMAND: "required=!CUSTOM_X&limit=3&resources=VCPU:8,MEMORY_MB:1",
    TABLE: "resources=PGPU:1,MEMORY_MB:4096,VCPU:8&resources_NET=SRIOV_NET_VF:2&required=HW_NUMA_ROOT,!CUSTOM_OLD"
    "&group_policy=none",
    "vcpus=8 ram=512": "resources=VCPU:8,MEMORY_MB:512",
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
