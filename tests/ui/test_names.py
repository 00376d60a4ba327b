"""Names and numbers on pages: short inside a tree, no hidden characters, amounts in readable units."""

import pytest
from markupsafe import escape

from placement.domain.quantities import amount_in_words
from placement.ui.names import BLANK, named, visible, within
from placement.ui.numbers import amount

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
