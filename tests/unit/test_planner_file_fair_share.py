"""The section fair_share of the planner file, and the errors if it is invalid or inconsistent."""

from pathlib import Path

import pytest

from placement.allocators.fair_share.queues import Queue, QueueCapacity, tree_of
from placement.allocators.fair_share.tree import Branch
from placement.errors import ConfigurationError
from placement.settings.planner.values import FairShareSettings
from tests.unit.test_planner_file import SAMPLE, read

AGGREGATE = "0c6f8b1f-0f3a-4a01-9c2e-4f0a59d44c38"


def fair_share(directory: Path, text: str) -> FairShareSettings:
    return read(directory, "fair_share:\n" + text).fair_share


def refusal(directory: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        fair_share(directory, text)
    return caught.value.message.removeprefix(f"{directory / 'planner.yaml'}, ")


def test_everything_that_can_be_written_is_read(tmp_path: Path) -> None:
    text = f"""
  classes: [VCPU, PGPU]
  leaves: consumer_type
  tree:
    root/eng: {{weight: 2}}
    root/eng/dev: {{weight: 0.5, consumer_types: [INSTANCE]}}
  queues:
    - {{hierarchy: root/eng/prod, weights: 1/2/8, consumer_types: [JOB]}}
  default: root/rest
  partition: {AGGREGATE.upper()}
  keep_s: 0.5
"""
    lines = [
        Queue("root/eng", (None, 2)),
        Queue("root/eng/dev", (None, None, 0.5), ("INSTANCE",)),
        Queue("root/eng/prod", (1, 2, 8), ("JOB",)),
    ]
    queues = tree_of(lines, "root/rest")
    assert fair_share(tmp_path, text) == FairShareSettings(("VCPU", "PGPU"), "consumer_type", queues, AGGREGATE, 0.5)
    assert queues.weights == {"root/eng": 2, "root/eng/dev": 0.5, "root/eng/prod": 8, "root/rest": 1}


def test_the_form_of_volcano_says_the_same_as_the_tree(tmp_path: Path) -> None:
    volcano = "  queues:\n  - {hierarchy: root/eng/prod, weights: 1/2/8}\n  - {hierarchy: root/sci, weights: 100/0.5}\n"
    tree = "  tree: {root/eng: {weight: 2}, root/eng/prod: {weight: 8, projects: []}, root/sci: {weight: 0.5}}\n"
    assert fair_share(tmp_path, volcano) == fair_share(tmp_path, tree)


def test_the_example_of_the_sample_can_be_used(tmp_path: Path) -> None:
    example = SAMPLE.read_text().partition("# fair_share:\n")[2].partition("\n\n")[0]
    settings = fair_share(
        tmp_path, "".join(line.removeprefix("# ").removeprefix("#") for line in example.splitlines(True))
    )
    assert settings.queues.weights == {
        "root/eng": 2,
        "root/eng/dev": 2,
        "root/sci": 0.5,
        "root/ops": 1,
        "root/eng/prod": 8,
        "root/default": 1,
    }


CONTRADICTIONS = {
    "a queue that is the beginning of another": (
        "  tree:\n    root/sci: {projects: [a]}\n    root/sci/dev: {projects: [b]}\n",
        "lines 3 and 4: fair_share: root/sci is a queue and cannot contain the queue root/sci/dev.",
    ),
    "two weights for one branch": (
        "  queues:\n  - {hierarchy: root/eng/prod, weights: 1/2/8}\n  - {hierarchy: root/eng/dev, weights: 1/3/8}\n",
        "lines 3 and 4: fair_share: root/eng/dev gives root/eng the weight 3, root/eng/prod gives it 2.",
    ),
    "a project in two queues": (
        "  tree:\n    root/a: {projects: [p]}\n    root/b: {projects: [p]}\n",
        "lines 3 and 4: fair_share: p is in root/a and in root/b.",
    ),
    "a default that is a branch": (
        "  tree:\n    root/a/b: {}\n  default: root/a\n",
        "lines 3 and 4: fair_share: root/a is a queue and cannot contain the queue root/a/b.",
    ),
    "a default that is a branch and is not written": (
        "  tree:\n    root/default/b: {}\n",
        "lines 1 and 3: fair_share: root/default is a queue and cannot contain the queue root/default/b.",
    ),
}


@pytest.mark.parametrize(("text", "said"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_lines_that_contradict_each_other_are_both_named(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text) == said


MISTAKES = {
    "another key": (
        "  class: [VCPU]\n",
        (
            "line 2: fair_share: expected one of the keys classes, leaves, tree, queues, default, partition, keep_s, "
            "found the key 'class'."
        ),
    ),
    "an annotation of Volcano": (
        "  queues:\n    - {volcano.sh/hierarchy: root/eng, volcano.sh/hierarchy-weights: 1/2}\n",
        (
            "line 3: fair_share.queues.0: expected one of the keys hierarchy, weights, projects, guarantee, deserved, "
            "limit, found the key 'volcano.sh/hierarchy'. "
            "A queue is written - {hierarchy: root/eng/prod, weights: 1/2/8, projects: []}."
        ),
    ),
    "no class": (
        "  classes: []\n",
        "line 2: fair_share.classes: expected a list of at least one resource class, found an empty list.",
    ),
    "a class twice": (
        "  classes: [VCPU, VCPU]\n",
        "line 2: fair_share.classes.1: expected each class once, found 'VCPU'.",
    ),
    "a path without a root": (
        "  tree:\n    eng: {weight: 2}\n",
        "line 3: fair_share.tree: expected a path such as root/eng/dev, found the key 'eng'.",
    ),
    "a weight of nothing": (
        "  tree:\n    root/eng: {weight: 0}\n",
        "line 3: fair_share.tree.root/eng.weight: expected a number from 0.000001 to 1000000, found '0'.",
    ),
    "too few weights": (
        "  queues:\n  - {hierarchy: root/eng/prod, weights: 1/2}\n",
        (
            "line 3: fair_share.queues.0.weights: expected 3 weights, one for each name of root/eng/prod, "
            "such as 1/1/1, found '1/2'."
        ),
    ),
    "consumer types where projects are expected": (
        "  tree:\n    root/eng: {consumer_types: [A]}\n",
        (
            "line 3: fair_share.tree.root/eng: expected one of the keys weight, projects, guarantee, "
            "deserved, limit, found the key 'consumer_types'."
        ),
    ),
    "another kind of leaves": (
        "  leaves: user\n",
        "line 2: fair_share.leaves: expected project or consumer_type, found 'user'.",
    ),
}


@pytest.mark.parametrize(("text", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text) == said


def test_queues_may_have_amounts_beside_weights(tmp_path: Path) -> None:
    text = """
  classes: [VCPU, PGPU]
  tree:
    root/eng: {weight: 2, guarantee: {VCPU: 4}, deserved: {VCPU: 8, PGPU: 2}, limit: {VCPU: 16}}
  queues:
    - {hierarchy: root/sci, weights: 1/1, limit: {PGPU: 3}}
"""
    queues = fair_share(tmp_path, text).queues
    assert queues.capacities == {
        "root/eng": QueueCapacity({"VCPU": 4}, {"VCPU": 8, "PGPU": 2}, {"VCPU": 16}),
        "root/sci": QueueCapacity(limit={"PGPU": 3}),
    }
    (eng,) = [part for part in queues.tree([]).parts if part.name == "eng"]
    assert isinstance(eng, Branch)
    assert (eng.guarantee, eng.deserved, eng.limit) == ({"VCPU": 4}, {"VCPU": 8, "PGPU": 2}, {"VCPU": 16})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  tree:\n    root/a: {guarantee: {DISK_GB: 1}}\n", "line 3: "),
        ("  tree:\n    root/a: {guarantee: {VCPU: 4}, deserved: {VCPU: 3}}\n", "a number from 4 up"),
        (
            (
                "  tree:\n    root/a: {limit: {VCPU: 8}}\n    root/a/b: {deserved: {VCPU: 5}}\n"
                "    root/a/c: {deserved: {VCPU: 4}}\n"
            ),
            "lines 3 and 5: fair_share: with root/a/c, deserved adds up to 9 VCPU in root/a, the limit of which is 8.",
        ),
        (
            (
                "  tree:\n    root/a/b: {guarantee: {VCPU: 3}}\n    root/a/c: {guarantee: {VCPU: 2}}\n"
                "    root/a: {guarantee: {VCPU: 4}}\n"
            ),
            "lines 4 and 5: fair_share: with root/a/c, guarantee adds up to 5 VCPU in root/a, ",
        ),
        (
            (
                "  tree:\n    root/a: {deserved: {VCPU: 8}}\n    root/a/b: {guarantee: {VCPU: 5}}\n"
                "    root/a/b/x: {guarantee: {VCPU: 5}}\n    root/a/c/y: {guarantee: {VCPU: 4}}\n"
            ),
            "lines 3 and 6: fair_share: with root/a/c/y, guarantee adds up to 9 VCPU in root/a, ",
        ),
    ],
    ids=["class", "order", "sum", "guarantees together", "far below"],
)
def test_what_is_promised_must_be_possible(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text)


def test_what_is_promised_inside_a_queue_counts_once(tmp_path: Path) -> None:
    text = """
  tree:
    root/a: {guarantee: {VCPU: 8}}
    root/a/b: {guarantee: {VCPU: 8}}
    root/a/b/c: {guarantee: {VCPU: 3}}
    root/a/b/d: {guarantee: {VCPU: 5}}
"""
    assert set(fair_share(tmp_path, text).queues.capacities) == {"root/a", "root/a/b", "root/a/b/c", "root/a/b/d"}
