"""Mistakes in the planner file are told in one line, with the line that they are in."""

from pathlib import Path

import pytest

from placement.errors import ConfigurationError
from placement.settings.planner.sections import load_planner
from tests.unit.test_planner_file import read

A, B = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "ab")
PROFILE = "profiles:\n  default:\n"
FIT = f"{PROFILE}    fit:\n      resources:\n        "
SRA = f"{PROFILE}    sra:\n      resources:\n        "
RESERVE = f"{PROFILE}    proportional:\n      reserve:\n        "
PACKING = f"{PROFILE}    fragmentation:\n      devices: CUSTOM_GPU\n      "
SHARES = "fair_share:\n"


def tree(*lines: str) -> str:
    return f"{SHARES}  tree:\n" + "".join([f"    {line}\n" for line in lines])


def queues(*lines: str) -> str:
    return f"{SHARES}  queues:\n" + "".join([f"  - {{{line}}}\n" for line in lines])


def guaranteed(path: str, vcpus: int) -> str:
    return f"{path}: {{guarantee: {{VCPU: {vcpus}}}}}"


MISTAKES = [
    ("levles: {}\n", "line 1: expected one of the keys levels, "),
    ("{'': 1}\n", "line 1: expected a text as the key, found ''"),
    ("aggregates: [a]\n", "line 1: aggregates: expected a mapping, found a list"),
    ("aggregates: {Zone: {a: b}}\n", "expected a kind of aggregates in lower case, such as zone or rack, found"),
    ("aggregates: {host: {a: b}}\n", "expected another kind than host, which each tree is by itself, found"),
    ("aggregates:\n  zone:\n    a: b\n", "line 3: aggregates.zone.a: expected the uuid of an aggregate, or a list of"),
    (f"aggregates:\n  zone:\n    a/b: {A}\n", "line 3: aggregates.zone: expected a name of up to 100 characters"),
    (f"aggregates:\n  zone:\n    a: {A}\n    b: [{B},\n {A}]\n", "line 5: aggregates.zone.b.1: expected an aggregate"),
    ("levels:\n  numa: A\n  numa: B\n", "line 3: levels: expected each key once (numa also stands in line 2)"),
    ("levels:\n  numa: hw-numa\n", "line 2: levels.numa: expected a trait such as HW_NUMA_ROOT, found 'hw-numa'"),
    ("levels:\n  a: X\n  b: X\n", "line 3: levels.b: expected a trait that no other level has, found 'X'"),
    ("default_profile: ai\n", "line 1: default_profile: expected default, found 'ai'"),
    ("profiles: {a: {}, b: {}}\n\ndefault_profile: c\n", "line 3: default_profile: expected a or b, found 'c'"),
    (f"{PROFILE}    fitt: {{}}\n", "line 3: profiles.default: expected one of the keys fit, sra"),
    ("profiles: {default: {fit: {resources: {}}}}\n", "line 1: profiles.default.fit.resources: expected a mapping"),
    (f"{FIT}VCPU: MostAllocated", "line 5: profiles.default.fit.resources.VCPU: expected a mapping, found 'MostAll"),
    (f"{FIT}VCPU: {{type: Packed}}", "VCPU.type: expected MostAllocated or LeastAllocated, found 'Packed'"),
    (f"{FIT}a.b/c: {{type: MostAllocated}}\n        a.b.c: {{}}", "resources: expected one entry for CUSTOM_A_B_C"),
    *[
        (f"{template}{name}: {value}", "expected a resource class or a family such as CUSTOM_GPU_*, found the key")
        for template, value in ((FIT, "{type: MostAllocated}"), (SRA, "1"), (RESERVE, "{VCPU: 1}"))
        for name in ("'*'", "CUSTOM_**", "CUSTOM_*_GPU", "'*.com/gpu'", "vcpu")
    ],
    *[
        (f"{SRA}PGPU: {number}", f"sra.resources.PGPU: expected a number from 0 up, found '{number}'")
        for number in ("-1", "true", ".inf", "1e999", "010", "1:30", "x")
    ],
    (f"{SRA}PGPU: '5'", "sra.resources.PGPU: expected a number from 0 up, found '5'"),
    (f"{SRA}PGPU:", "sra.resources.PGPU: expected a number from 0 up, found nothing"),
    (f"{SRA}PGPU: [1]", "sra.resources.PGPU: expected a number from 0 up, found a list"),
    (f"{RESERVE}PGPU: {{}}", "proportional.reserve.PGPU: expected a mapping with at least one key"),
    (f"{RESERVE}PGPU: {{VCPU: -8}}", "reserve.PGPU.VCPU: expected a number from 0 up"),
    (f"{RESERVE}PGPU: {{CUSTOM_*: 1}}", "expected one other class, not a family, found the key 'CUSTOM_*'"),
    (f"{RESERVE}PGPU: {{VCPU: 1}}\n      mode: drop", "line 6: profiles.default.proportional.mode: expected last or"),
    (f"{SRA}PGPU: 1\n      mode: x", "sra.mode: expected unneeded or upstream, found 'x'"),
    (f"{RESERVE}PGPU: {{VCPU: 1}}\n      exempt: me", "exempt: expected all or own, found 'me'"),
    (f"{PACKING}size: 0", "line 5: profiles.default.fragmentation.size: expected a whole number from 1 up, found '0'"),
    (f"{PACKING}kinds: [gpu]", "kinds.0: expected a trait, or a family such as CUSTOM_GPU_*, found 'gpu'"),
    (f"{PACKING}beside: [CUSTOM_GPU]", "beside: expected other resource classes than that of devices, found a list"),
    (f"{PACKING}flavors: {{a: {{share: 1, resources: {{}}}}}}", "flavors.a: expected the key devices beside it"),
    (f"{PACKING}flavors: {{a: {{devices: 1, share: 2, resources: {{}}}}}}", "a.share: expected at most the size of a"),
    (f"{PACKING}flavors: {{a: {{resources: {{DISK_GB: 1}}}}}}", "a.resources.DISK_GB: expected one of VCPU, MEMORY_MB"),
    ("exclusive: {rack: CUSTOM_LOCK}\n", "exclusive: expected a level: numa, pcie, device, found the key 'rack'."),
    ("exclusive: {pcie: lock}\n", "exclusive.pcie: expected a resource class such as CUSTOM_PCIE_LOCK"),
    ("exclusive: {pcie: A, numa: A}\n", "exclusive.numa: expected a resource class that no other level has"),
    ("devices: {types: {gpu: {}}}\n", "devices.types.gpu: expected the key class, found an empty mapping."),
    ("devices: {types: {gpu: {class: PGPU, whole: 0}}}\n", "whole: expected a whole number from 1 up, found '0'."),
    ("devices: {same_pcie: rack}\n", "devices.same_pcie: expected numa or pcie, found 'rack'."),
    ("flavors:\n  a: 5\n", "line 2: flavors.a: expected a query string"),
    ("flavors:\n  a: {cpus: 2}\n", "expected one of the keys vcpus"),
    ("flavors:\n  a: {vcpus: many}\n", "expected a whole number"),
    ("flavors:\n  a: {vcpus: 1, extra_specs: {hw:cpu_policy: mixed}}\n", "line 2: flavors.a: expected a flavor"),
    ("private_flavors: [a]\nflavors: {b: resources=VCPU:1}\n", "expected the name of a flavor, found 'a'"),
    ("names: nowhere.yaml\n", "nowhere.yaml cannot be read: No such file or directory."),
    ("names: {projekts: {}}\n", "line 1: names: expected one of the keys projects, users"),
    ("names: {users: {a: [b]}}\n", "line 1: names.users.a: expected a name of up to 255 characters"),
    (f"{SHARES}  class: [VCPU]\n", "line 2: fair_share: expected one of the keys classes, leaves, tree, queues"),
    (queues("volcano.sh/hierarchy: a/b, volcano.sh/hierarchy-weights: 1/2"), "A queue is written - {hierarchy"),
    (f"{SHARES}  classes: []\n", "line 2: fair_share.classes: expected a list of at least one resource class"),
    (f"{SHARES}  classes: [VCPU, VCPU]\n", "line 2: fair_share.classes.1: expected each class once, found 'VCPU'."),
    (f"{SHARES}  leaves: user\n", "line 2: fair_share.leaves: expected project or consumer_type, found 'user'."),
    (tree("eng: {weight: 2}"), "line 3: fair_share.tree: expected a path such as root/eng/dev, found the key 'eng'."),
    (tree("root/eng: {weight: 0}"), "line 3: fair_share.tree.root/eng.weight: expected a number from 0.000001 to"),
    (queues("hierarchy: root/eng/prod, weights: 1/2"), "line 3: fair_share.queues.0.weights: expected 3 weights"),
    (tree("root/eng: {consumer_types: [A]}"), "weight, projects, guarantee, deserved, limit, found the key 'consumer"),
    (
        tree("root/sci: {projects: [a]}", "root/sci/dev: {projects: [b]}"),
        "lines 3 and 4: fair_share: root/sci is a queue and cannot contain the queue root/sci/dev.",
    ),
    (
        queues("hierarchy: root/eng/prod, weights: 1/2/8", "hierarchy: root/eng/dev, weights: 1/3/8"),
        "lines 3 and 4: fair_share: root/eng/dev gives root/eng the weight 3, root/eng/prod gives it 2.",
    ),
    (tree("root/a: {projects: [p]}", "root/b: {projects: [p]}"), "lines 3 and 4: fair_share: p is in root/a and in"),
    (tree("root/a/b: {}") + "  default: root/a\n", "lines 3 and 4: fair_share: root/a is a queue and cannot contain"),
    (tree("root/default/b: {}"), "lines 1 and 3: fair_share: root/default is a queue and cannot contain"),
    (tree("root/a: {guarantee: {DISK_GB: 1}}"), "line 3: fair_share.tree.root/a.guarantee"),
    (tree("root/a: {guarantee: {VCPU: 4}, deserved: {VCPU: 3}}"), "a number from 4 up"),
    (
        tree("root/a: {limit: {VCPU: 8}}", "root/a/b: {deserved: {VCPU: 5}}", "root/a/c: {deserved: {VCPU: 4}}"),
        "lines 3 and 5: fair_share: with root/a/c, deserved adds up to 9 VCPU in root/a, the limit of which is 8.",
    ),
    (
        tree(guaranteed("root/a/b", 3), guaranteed("root/a/c", 2), guaranteed("root/a", 4)),
        "lines 4 and 5: fair_share: with root/a/c, guarantee adds up to 5 VCPU in root/a, ",
    ),
    (
        tree("root/a: {deserved: {VCPU: 8}}", *map(guaranteed, ("root/a/b", "root/a/b/x", "root/a/c/y"), (5, 5, 4))),
        "lines 3 and 6: fair_share: with root/a/c/y, guarantee adds up to 9 VCPU in root/a, ",
    ),
    *[
        (text, ": expected YAML")
        for text in ("a: [1\n", "a: b: c\n", "\ta: 1\n", "a: *nowhere\n", "--- a\n--- b\n", "a: \x00\n", "[" * 2000)
    ],
    (b"\xff\xfe\xfa", ": expected YAML"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[str(number) for number in range(len(MISTAKES))])
def test_a_mistake_is_told_in_one_line_with_the_line_that_it_is_in(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read(tmp_path, text)
    assert refused.value.message.startswith(f"{tmp_path}/")
    assert said in refused.value.message
    assert "\n" not in refused.value.message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml cannot be read: No such file"):
        load_planner(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        load_planner(tmp_path)
