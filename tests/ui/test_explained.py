"""Explanations for people: amounts with units, and each fact shown in one way only."""

from typing import Any

import pytest
from flask import Flask
from markupsafe import Markup

from placement.ui.numbers import facts, in_units
from tests.clouds import provider
from tests.stored_clouds import stored
from tests.ui.visitor import Visitor

TRAIT = "HW_NUMA_ROOT"
ASKED = f"resources_N=MEMORY_MB:98304&required_N={TRAIT}"


def words(text: Markup) -> str:
    return text.striptags()


@pytest.mark.parametrize(
    ("text", "value", "told"),
    [
        ("65536 MEMORY_MB free (group _10000)", "", "64 GiB MEMORY_MB free (group _10000)"),
        (
            "1234 trees fail this: 2 VCPU, 2048 MEMORY_MB free",
            "",
            "1,234 trees fail this: 2 VCPU, 2 GiB MEMORY_MB free",
        ),
        (
            "can be had of one is 2048: 1 provider has it.",
            "DISK_GB:1",
            "can be had of one is 2 TiB DISK_GB: 1 provider has it.",
        ),
        (
            "can be had of one is 2048: 1 provider has it.",
            "VCPU:1,PGPU:1",
            "can be had of one is 2,048: 1 provider has it.",
        ),
        (
            "in the tree of 4e8e5957-6490-4770-9e5b-f1f75b21c03c",
            "",
            "in the tree of 4e8e5957-6490-4770-9e5b-f1f75b21c03c",
        ),
        ("1 trait CUSTOM_2000 of 0.5000, 1000.5", "", "1 trait CUSTOM_2000 of 0.5000, 1000.5"),
    ],
)
def test_amounts_of_sentences_are_told_in_units_and_names_stay(text: str, value: str, told: str):
    assert words(in_units(text, value)) == told


def test_nothing_of_a_sentence_becomes_markup():
    told = in_units("<b> 2048 MEMORY_MB <i>")
    assert told.startswith("&lt;b&gt; <data")
    assert told.endswith("MEMORY_MB &lt;i&gt;")
    example: dict[str, Any] = {"uuid": "u", "name": "n", "free": 2048, "not_in": "<b>"}
    assert [(word, words(told)) for word, told in facts(example, "MEMORY_MB:4096")] == [
        ("free", "2 GiB"),
        ("not in", "<b>"),
    ]


def test_a_cause_is_told_in_the_words_of_what_would_help_where_both_are_one_fact(visitor: Visitor, app: Flask):
    """The last provider fails on the trait, but only because those that have the trait have too little left."""
    nodes = [provider(f"host-numa{number}", MEMORY_MB=65536, traits=(TRAIT,)) for number in range(2)]
    stored(app, provider("host", *nodes), provider("flat", MEMORY_MB=131072))
    page = visitor.page(f"/ui/request?query={ASKED.replace('=', '%3D').replace('&', '%26')}")
    assert "Cause: No provider is left after this condition: trait HW_NUMA_ROOT (group _N)." in page.text
    assert (
        "Among providers that meet all other conditions, none has more than 64 GiB MEMORY_MB left;"
        " the request needs 96 GiB MEMORY_MB from one."
    ) in page.text
    assert "65536 MEMORY_MB" not in page.text


def test_a_cause_that_is_a_fact_of_its_own_is_told_alone(visitor: Visitor, app: Flask):
    stored(app, provider("flat", MEMORY_MB=131072))
    page = visitor.page("/ui/request?query=resources%3DMEMORY_MB:131073")
    assert "Cause: No provider is left after this condition:" in page.text
    assert "Among providers that meet all other conditions" not in page.text
