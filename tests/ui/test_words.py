"""The words of pages: names short inside a tree, no hidden characters, amounts in readable units, each fact once."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from flask import Flask
from markupsafe import Markup, escape

from placement.domain.quantities import amount_in_words
from placement.ui.filters import amount, facts, in_units, named, visible, within
from tests.clouds import provider
from tests.stored_clouds import stored
from tests.ui.visitor import Visitor

WORDS = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))
ROOT = "gpu-b12-03.eu-west-1.cloud.example.net"


@pytest.mark.parametrize(("name", "short"), WORDS["children"].items())
def test_a_child_is_named_by_what_its_root_does_not_say(name: str, short: str):
    assert within(name.format(ROOT), ROOT) == short.format(ROOT)


def test_what_is_left_out_is_there_on_hover_and_for_screen_readers():
    shown = named("c1-numa0-gpu3", "c1")
    assert shown == '<bdi title="c1-numa0-gpu3"><span class="hidden-text">c1 </span>numa0 / gpu3</bdi>'


@pytest.mark.parametrize(("name", "shown"), WORDS["hostile"].items())
def test_nothing_in_a_name_hides_or_turns_the_text(name: str, shown: str):
    assert visible(name) == shown
    assert str(escape(shown)) in named(name)


@pytest.mark.parametrize(("value", "class_name", "words"), WORDS["amounts"])
def test_amounts_are_told_in_units_of_people(value: int, class_name: str, words: str):
    assert amount_in_words(value, class_name) == words


def test_the_exact_amount_is_there_on_hover():
    assert amount(131_073, "MEMORY_MB") == '<data value="131073" title="131,073 MEMORY_MB">128 GiB</data>'
    assert amount(131_073, "VCPU") == "131,073"


TRAIT = "HW_NUMA_ROOT"
ASKED = f"resources_N=MEMORY_MB:98304&required_N={TRAIT}"


def words(text: Markup) -> str:
    return text.striptags()


@pytest.mark.parametrize(("text", "value", "told"), WORDS["sentences"])
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
