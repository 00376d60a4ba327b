"""``placement planner import``: Volcano's documents (seeds 001 and 002), converted to the planner file."""

from pathlib import Path

import pytest
import yaml

from placement.settings.planner import PlannerSettings
from placement.settings.planner.sections import load_planner
from tests.cli.commands import Command

AI = """\
  actions: "enqueue, allocate, backfill, reclaim, preempt"
  tiers:
    - plugins:
      - name: resource-strategy-fit
        arguments:
          resourceStrategyFitWeight: 10
          resources:
            nvidia.com/gpu:
              type: MostAllocated
              weight: 2
            cpu:
              type: LeastAllocated
              weight: 1
          sra:
            enable: true
            resources: nvidia.com/gpu
            weight: 10
            resourceWeight:
              nvidia.com/gpu: 1
"""
PROPORTIONAL = """\
  actions: "enqueue, reclaim, allocate, backfill, preempt"
  tiers:
  - plugins:
    - name: drf
    - name: resource-strategy-fit
      arguments:
        proportional:
          enable: true
          resources: nvidia.com/gpu,nvidia.com/v100-sxm2-16gb
          resourceProportion:
            nvidia.com/gpu.cpu: 8
            nvidia.com/gpu.memory: 8
            nvidia.com/v100-sxm2-16gb.cpu: 16
            nvidia.com/v100-sxm2-16gb.memory: 16
"""
QUEUES = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: prod
  annotations: {volcano.sh/hierarchy: root/eng/prod, volcano.sh/hierarchy-weights: 1/2/8}
spec: {weight: 1, reclaimable: true}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: science}
spec:
  weight: 3
  guarantee: {resource: {cpu: 4}}
  capability: {cpu: "8", memory: 32Gi, nvidia.com/gpu: 2}
"""


def imported(placement: Command, text: str) -> tuple[str, PlannerSettings]:
    """Return the output for a file, and the planner file that it is."""
    (placement.home / "volcano.yaml").write_text(text)
    found = placement.run("planner", "import", "volcano.yaml")
    assert found.returncode == 0, found.stderr
    (placement.home / "imported.yaml").write_text(found.stdout)
    return found.stdout, load_planner(placement.home / "imported.yaml")


def test_seed_002_the_best_practice_for_ai(placement: Command) -> None:
    text, planner = imported(placement, AI)
    assert text.startswith("# Left out: actions: the planner has no cycle of actions.\ndefault_profile: volcano\n")
    strategy = planner.profile_in_force.strategy
    assert strategy.fit is not None
    assert strategy.sra is not None
    preferences = {name: (one.type, one.weight) for name, one in strategy.fit.resources.items()}
    assert preferences == {"PGPU": ("MostAllocated", 2), "VCPU": ("LeastAllocated", 1)}
    assert (dict(strategy.sra.resources), strategy.sra.weight, strategy.sra.mode) == ({"PGPU": 1}, 10, "upstream")
    assert planner.profile_in_force.compactness == 0


def test_seed_002_proportions_in_megabytes(placement: Command) -> None:
    text, planner = imported(placement, PROPORTIONAL)
    assert "# Left out: the plugin drf.\n" in text
    proportional = planner.profile_in_force.strategy.proportional
    assert proportional is not None
    assert {name: dict(of) for name, of in proportional.reserve.items()} == {
        "PGPU": {"VCPU": 8, "MEMORY_MB": 8e9 / 2**20},
        "CUSTOM_NVIDIA_COM_V100_SXM2_16GB": {"VCPU": 16, "MEMORY_MB": 16e9 / 2**20},
    }
    assert (proportional.mode, proportional.exempt) == ("filter", "all")


def test_seed_002_families_and_patterns_that_volcano_refuses(placement: Command) -> None:
    names = ["nvidia.com/gpu/*", "*", "vendor.*/gpu", "*/gpu", "vendor.com/**", "amd.com/gpu-mi100"]
    resources = {name: {"type": "MostAllocated", "weight": 2} for name in names}
    plugin = {"name": "resource-strategy-fit", "arguments": {"resources": resources, "sra.enable": "false"}}
    text, planner = imported(placement, yaml.safe_dump({"tiers": [{"plugins": [plugin]}]}))
    fit = planner.profile_in_force.strategy.fit
    assert fit is not None
    assert set(fit.resources) == {"CUSTOM_NVIDIA_COM_GPU_*", "CUSTOM_AMD_COM_GPU_MI100"}
    assert text.count("# Left out: ") == 4


def test_dotted_arguments_mean_the_same(placement: Command) -> None:
    arguments = {
        "sra.enable": "true",
        "sra.resources": "nvidia.com/t4, nvidia.com/a10",
        "sra.weight": 2,
        "sra.resourceWeight.nvidia.com/t4": 3,
    }
    plugin = {"name": "resource-strategy-fit", "arguments": arguments}
    configuration = yaml.safe_dump({"tiers": [{"plugins": [plugin]}]})
    config_map = {"kind": "ConfigMap", "data": {"volcano-scheduler.conf": configuration}}
    _text, planner = imported(placement, yaml.safe_dump(config_map))
    sra = planner.profile_in_force.strategy.sra
    assert sra is not None
    assert dict(sra.resources) == {"CUSTOM_NVIDIA_COM_T4": 3, "CUSTOM_NVIDIA_COM_A10": 1}


def test_amounts_of_queues_are_what_they_are_in_kubernetes(placement: Command) -> None:
    written = "{cpu: 1500m, memory: 1073741824, ephemeral-storage: 20G}"
    text, _planner = imported(placement, QUEUES.replace("{cpu: 4}", written))
    assert "guarantee: {VCPU: 2, MEMORY_MB: 1024, DISK_GB: 19}" in text


def test_seed_001_queues(placement: Command) -> None:
    text, planner = imported(placement, QUEUES)
    assert "# Left out: spec.reclaimable of the queue prod.\n" in text
    assert "# Left out: who is in the queues: write the ids of projects under projects.\n" in text
    assert planner.fair_share.classes == ("VCPU", "MEMORY_MB", "PGPU")
    assert yaml.safe_load(text)["fair_share"]["tree"] == {
        "root/eng": {"weight": 2},
        "root/eng/prod": {"weight": 8, "projects": []},
        "root/science": {
            "weight": 3,
            "guarantee": {"VCPU": 4},
            "limit": {"VCPU": 8, "MEMORY_MB": 32768, "PGPU": 2},
            "projects": [],
        },
    }


def queue(name: str, hierarchy: str = "", weights: str = "", **spec: object) -> dict[str, object]:
    """Return a queue of Volcano."""
    annotations = {"volcano.sh/hierarchy": hierarchy, "volcano.sh/hierarchy-weights": weights} if hierarchy else {}
    return {"kind": "Queue", "metadata": {"name": name, "annotations": annotations}, "spec": spec}


@pytest.mark.parametrize(
    ("queues", "tree"),
    [
        pytest.param(
            [
                queue("root", capability={"cpu": 100}),
                queue("dev", parent="eng", weight=2, deserved={"cpu": 4}),
                queue("eng", parent="root", weight=3, capability={"cpu": 8}),
            ],
            {
                "root/eng": {"weight": 3, "limit": {"VCPU": 8}},
                "root/eng/dev": {"weight": 2, "deserved": {"VCPU": 4}, "projects": []},
            },
            id="parents make the tree, and root is the root",
        ),
        pytest.param(
            [queue("a", "root/a", "root/1"), queue("b", "root/b", "1/0.5"), queue("c", "root/c", "1/x")],
            {path: {"weight": 1, "projects": []} for path in ("root/a", "root/b", "root/c")},
            id="the root's weight is not read, and weights are 1 at least",
        ),
        pytest.param(
            [queue("a", "root/eng/a", "1/2/3"), queue("b", "root/eng/b", "1/9/4.5")],
            {
                "root/eng": {"weight": 2},
                "root/eng/a": {"weight": 3, "projects": []},
                "root/eng/b": {"weight": 4.5, "projects": []},
            },
            id="the first queue decides the weights on its path",
        ),
    ],
)
def test_queues_make_the_tree_that_they_make_in_volcano(placement: Command, queues: object, tree: object) -> None:
    text, _planner = imported(placement, yaml.safe_dump_all(queues))
    found = yaml.safe_load(text)["fair_share"]["tree"]
    assert found == tree


@pytest.mark.parametrize(
    ("queues", "reason"),
    [
        (
            [queue("a", deserved={"cpu": 8}, capability={"cpu": 4})],
            "The queue a has a deserved of 8 VCPU, above its capability of 4.",
        ),
        (
            [queue("a", guarantee={"resource": {"cpu": 8}}, deserved={"cpu": 4})],
            "The queue a has a guarantee of 8 VCPU, above its deserved of 4.",
        ),
        ([queue("a", parent="b"), queue("b", parent="a")], "The queue a is its own ancestor."),
        ([queue("a"), queue("a")], "The queue a is written twice."),
        ([queue("a", "root/eng/a", "1/2")], "The queue a needs 3 weights for root/eng/a, as 1/2/8."),
        ([queue("a", "root/a", "1/1"), queue("b", "root/a", "1/1")], "The queues a and b have the same place root/a."),
        ([queue("a", weight=-1)], "would be refused: line 6: fair_share.tree.root/a.weight: expected a number"),
    ],
)
def test_queues_that_the_planner_would_refuse_are_refused_by_name(
    placement: Command, queues: object, reason: str
) -> None:
    (placement.home / "volcano.yaml").write_text(yaml.safe_dump_all(queues))
    done = placement.run("planner", "import", "volcano.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert reason in done.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kind: Pod\n", "This is neither a scheduler configuration (actions, tiers) nor a Queue."),
        ("- 1\n", "This is neither a scheduler configuration (actions, tiers) nor a Queue."),
        ("a: [\n", "This is not YAML: "),
        ("a: " + "[" * 2000, "This is not YAML: it nests too deeply."),
        ("tiers: [1]\n", "This is not written as Volcano has it: "),
    ],
)
def test_what_is_not_volcanos_is_refused(placement: Command, text: str, sentence: str) -> None:
    Path(placement.home / "volcano.yaml").write_text(text)
    found = placement.run("planner", "import", "volcano.yaml")
    assert found.returncode == 1
    assert sentence in found.stderr
