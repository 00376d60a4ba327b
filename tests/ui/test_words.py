"""The words of pages: names short inside a tree, no hidden characters, amounts in readable units, each fact once."""

from typing import Any

import pytest
from flask import Flask
from markupsafe import Markup, escape

from placement.domain.quantities import amount_in_words
from placement.ui.filters import BLANK, amount, facts, in_units, named, visible, within
from tests.clouds import provider
from tests.stored_clouds import stored
from tests.ui.visitor import Visitor

ROOT = "gpu-b12-03.eu-west-1.cloud.example.net"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (f"{ROOT}-numa0-pcie1-gpu3", "numa0 / pcie1 / gpu3"),
        (f"{ROOT}_numa0/pcie1_gpu3", "numa0 / pcie1 / gpu3"),
        ("gpu-b12-03-numa0", "numa0"),
        (f"{ROOT}_pci_0000_ca_00_0", "pci_0000_ca_00_0"),
        (f"{ROOT}:Open vSwitch agent:br-eth0", "Open vSwitch agent:br-eth0"),
        (ROOT, ROOT),
        (f"{ROOT}-", f"{ROOT}-"),
        ("gpu-b12-030", "gpu-b12-030"),
        ("gpu-b12-03.eu-west-2.cloud.example.net", "gpu-b12-03.eu-west-2.cloud.example.net"),
        ("a pool", "a pool"),
    ],
)
def test_a_child_is_named_by_what_its_root_does_not_say(name: str, short: str):
    assert within(name, ROOT) == short


def test_what_is_left_out_is_there_on_hover_and_for_screen_readers():
    shown = named("c1-numa0-gpu3", "c1")
    assert shown == '<bdi title="c1-numa0-gpu3"><span class="hidden-text">c1 </span>numa0 / gpu3</bdi>'


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\u202etxt.exe", "[U+202E]txt.exe"),
        ("a\nb\x1b[1m", "a[U+000A]b[U+001B][1m"),
        ("\u200b\u2060", "[U+200B][U+2060]"),
        ("\u3164", "[U+3164]"),
        (" \u00a0", BLANK),
        ("Zürich 東京", "Zürich 東京"),
    ],
)
def test_nothing_in_a_name_hides_or_turns_the_text(name: str, shown: str):
    assert visible(name) == shown
    assert str(escape(shown)) in named(name)


@pytest.mark.parametrize(
    ("value", "class_name", "words"),
    [
        (387_973_120, "MEMORY_MB", "370 TiB"),
        (131_072, "NUMA_MEMORY_MB", "128 GiB"),
        (1023, "MEMORY_MB", "1,023 MiB"),
        (1_048_575, "MEMORY_MB", "1 TiB"),
        (4200, "DISK_GB", "4.1 TiB"),
        (1_600_000_000, "NET_BW_EGR_KILOBIT_PER_SEC", "1.6 Tbit/s"),
        (12_345, "NET_PACKET_RATE_KILOPACKET_PER_SEC", "12.3 Mpacket/s"),
        (-4096, "MEMORY_MB", "-4 GiB"),
        (131_072, "VCPU", "131,072"),
        (2**70, "MEMORY_MB", "1,073,741,824 EiB"),
    ],
)
def test_amounts_are_told_in_units_of_people(value: int, class_name: str, words: str):
    assert amount_in_words(value, class_name) == words


def test_the_exact_amount_is_there_on_hover():
    assert amount(131_073, "MEMORY_MB") == '<data value="131073" title="131,073 MEMORY_MB">128 GiB</data>'
    assert amount(131_073, "VCPU") == "131,073"


TRAIT = "HW_NUMA_ROOT"
ASKED = f"resources_N=MEMORY_MB:98304&required_N={TRAIT}"


def words(text: Markup) -> str:
    return text.striptags()


@pytest.mark.parametrize(
    ("text", "value", "told"),
    [
        ("65536 MEMORY_MB free (group _10000)", "", "64 GiB MEMORY_MB free (group _10000)"),
        ("1234 trees fail: 2 VCPU, 2048 MEMORY_MB free", "", "1,234 trees fail: 2 VCPU, 2 GiB MEMORY_MB free"),
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
        ("in 4e8e5957-6490-4770-9e5b-f1f75b21c03c", "", "in 4e8e5957-6490-4770-9e5b-f1f75b21c03c"),
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
