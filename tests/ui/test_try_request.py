"""The page for trying requests: candidates on their trees, explanations, and refusals beside the form."""

import re
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
from flask import Flask

from tests import clouds
from tests.api.conftest import Api, with_settings
from tests.clouds import provider
from tests.stored_clouds import stored
from tests.ui.visitor import Document, Visitor

pytestmark = pytest.mark.any_database

PATH = "/ui/request"
GPU = "resources_NUMA=VCPU:4&resources_GPU=PGPU:1&group_policy=none&same_subtree=_NUMA,_GPU"


def _numa_nodes(host: str) -> list[clouds.Provider]:
    return [provider(f"{host}-numa{numa}", provider(f"{host}-gpu{numa}", PGPU=1), VCPU=16) for numa in (0, 1)]


@pytest.fixture
def cloud(app: Flask) -> clouds.Cloud:
    """Two hosts with NUMA nodes and GPUs; most of the first is in use."""
    hosts = [provider(f"host{number}", *_numa_nodes(f"host{number}"), DISK_GB=500) for number in (1, 2)]
    made = stored(app, *hosts)
    clouds.allocate(Api(app), made.providers["host1-numa0"], {"VCPU": 10})
    return made


def asked(visitor: Visitor, query: str, status: int = 200, **more: object) -> Document:
    response = visitor.open(f"{PATH}?{urlencode({'query': query, **more})}")
    assert response.status_code == status, response.text
    return Document(response.text)


def test_candidates_are_drawn_on_their_trees_with_amounts_and_scores(visitor: Visitor, cloud: clouds.Cloud):
    page = asked(visitor, GPU)
    assert "4 candidates" in page.text
    assert "1. host2 score" in page.text
    assert "host2 numa0 serves _NUMA 4 VCPU of 16 free" in page.text
    assert "host2 gpu0 serves _GPU 1 PGPU of 1 free" in page.text
    assert "10 100.0" in page.text
    assert "4 VCPU of 6 free" in page.text


def test_candidates_come_as_a_table_with_what_is_free_after(visitor: Visitor, cloud: clouds.Cloud):
    page = asked(visitor, GPU)
    rows = [row for row in page.cells("4 candidates") if row[0].isdecimal()]
    assert [row[:2] for row in rows] == [["1", "host2"], ["2", "host1"], ["3", "host2"], ["4", "host1"]]
    assert rows[0][2].replace("host2 ", "") == "numa0 , gpu0"
    assert rows[0][3] == "28 of 32 VCPU 1 of 2 PGPU"
    assert rows[1][3] == "18 of 32 VCPU 1 of 2 PGPU"


def test_profiles_are_compared_side_by_side(app: Flask):
    """One spreads, the other packs: the order is reversed."""
    profiles = {
        name: {"fit": {"resources": {"VCPU": {"type": wanted}}}}
        for name, wanted in (("pack", "MostAllocated"), ("spread", "LeastAllocated"))
    }
    app = with_settings(app, planner_yaml=f"{{profiles: {profiles}, default_profile: pack}}").app
    made = stored(app, provider("full", VCPU=10), provider("empty", VCPU=10))
    clouds.allocate(Api(app), made.providers["full"], {"VCPU": 5})
    rows = asked(Visitor(app), "resources=VCPU:1", compare="spread").cells("2 candidates")
    assert [(row[1], row[-1]) for row in rows] == [("full", "2 (+1)"), ("empty", "1 (-1)")]


def test_what_gives_nothing_is_folded(visitor: Visitor, cloud: clouds.Cloud):
    page = asked(visitor, "resources=DISK_GB:1&limit=1")
    (folded,) = [words for words in page.words if words.endswith(" more")]
    assert folded == "2 more"


@pytest.mark.parametrize(("query", "right"), [("resources=VCPUS:1", "resources=VCPU:1"), ("resources=PCPU:1", None)])
def test_what_may_be_meant_is_offered(visitor: Visitor, cloud: clouds.Cloud, query: str, right: str | None):
    response = visitor.open(f"{PATH}?{urlencode({'query': query})}")
    links = [link for link in Document(response.text).links("href") if "request?" in link]
    assert [parse_qs(urlsplit(link).query)["query"][0] for link in links] == [right or "resources=VCPU:1"]


def test_names_are_completed_from_what_the_cloud_has(visitor: Visitor, cloud: clouds.Cloud):
    options = [str(tag["value"]) for name, tag in visitor.page(PATH).tags if name == "option"]
    assert {"VCPU:", "PGPU:", "DISK_GB:"} <= set(options)


def test_an_empty_answer_is_explained_with_near_misses(visitor: Visitor, app: Flask):
    made = stored(app, provider("full", VCPU=8), provider("small", VCPU=2))
    clouds.allocate(Api(app), made.providers["full"], {"VCPU": 7})
    page = asked(visitor, "resources=VCPU:4")
    assert "No candidates Cause: No provider is left after this condition: 4 VCPU free" in page.text
    assert "inventory of VCPU 2 2 4 VCPU free 0 0" in page.text
    assert "What would help 1 tree fails only this condition: 4 VCPU free" in page.text
    assert re.search("full [a-z0-9 ,]*free 1", page.text)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("resources=VCPU", "Badly formed resources parameter"),
        ("resources=NO_SUCH_CLASS:1", "Invalid resource class in resources parameter"),
        ("resources=VCPU:1&limit=none", "'none' does not match"),
        ("limit=3", "resources"),
        ("%00=1", "NUL characters are not allowed"),
    ],
)
def test_what_the_api_refuses_is_refused_with_its_message_beside_the_form(visitor: Visitor, query: str, message: str):
    page = asked(visitor, query, status=400)
    assert message in page.text
    fields = {attributes.get("id"): attributes for _, attributes in page.tags}
    assert fields["query"]["aria-invalid"] == "true"
    assert "fault" in (fields["query"]["aria-describedby"] or "").split()
    assert fields["fault"]["role"] == "alert"


@pytest.mark.parametrize(("version", "status"), [("1.9", 400), ("1.40", 406), ("one", 400), ("1." + "9" * 5000, 400)])
def test_a_microversion_without_candidates_is_refused(visitor: Visitor, version: str, status: int):
    asked(visitor, "resources=VCPU:1", status, microversion=version)


def test_ten_candidates_are_drawn_at_a_time_and_all_can_be_reached(visitor: Visitor, app: Flask):
    stored(app, *[provider(f"host{number:02}", VCPU=8) for number in range(23)])
    seen, link = set(), f"{PATH}?query=resources=VCPU:1"
    while link:
        page = visitor.page(link)
        assert "23 candidates" in page.text
        names = [word for word in page.words if word.startswith("host")]
        assert len(set(names)) <= 10
        seen |= set(names)
        link = next((str(tag["href"]) for _, tag in page.tags if tag.get("rel") == "next"), "")
    assert len(seen) == 23


def test_beyond_the_last_page_the_count_stays(visitor: Visitor, cloud: clouds.Cloud):
    page = asked(visitor, GPU, page=7)
    assert "4 candidates" in page.text
    assert "There are no more candidates." in page.text


def test_what_finds_nothing_is_explained_on_whatever_page(visitor: Visitor, cloud: clouds.Cloud):
    text = asked(visitor, "resources=VCPU:17", page=2).text
    assert "No candidates No provider could give 17 VCPU, even if it were empty: the largest has 16 VCPU." in text
    assert text.index("even if it were empty") < text.index("Cause")


def test_a_limit_of_the_request_holds(visitor: Visitor, cloud: clouds.Cloud):
    assert "1 candidate Best" in asked(visitor, f"{GPU}&limit=1").text


def test_a_filled_in_form_leads_to_the_address_of_its_query_string(visitor: Visitor):
    fields = [("suffix", ""), ("resources", "VCPU=1"), ("suffix", "_GPU"), ("resources", "PGPU:1"), ("limit", "5")]
    response = visitor.open(f"{PATH}?{urlencode(fields)}")
    assert response.status_code == 303
    sent = parse_qs(urlsplit(response.headers["location"]).query)
    assert sent == {"query": ["resources=VCPU:1&resources_GPU=PGPU:1&limit=5"], "microversion": ["1.39"]}


def test_the_form_is_filled_in_with_the_query(visitor: Visitor, cloud: clouds.Cloud):
    values = {attributes.get("id"): attributes.get("value") for _, attributes in asked(visitor, GPU).tags}
    assert (values["suffix-1"], values["resources-1"], values["same_subtree"]) == ("_NUMA", "VCPU:4", "_NUMA,_GPU")


def test_the_curl_line_repeats_the_request_below_the_prefix(app: Flask, cloud: clouds.Cloud):
    page = asked(Visitor(app, prefix="/placement"), GPU)
    line = next(word for word in page.words if word.startswith("curl"))
    assert "'http://localhost/placement/allocation_candidates?resources_NUMA=VCPU:4&" in line
    assert "placement 1.39" in line


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "{{ 7 * 7 }}"])
def test_hostile_names_are_shown_as_they_are(visitor: Visitor, app: Flask, name: str):
    made = stored(app, provider(name, VCPU=8))
    clouds.allocate(Api(app), made.providers[name], {"VCPU": 6})
    for query, status in (("resources=VCPU:1", 200), ("resources=VCPU:4", 200), (f"resources={quote(name)}:1", 400)):
        page = asked(visitor, query, status)
        assert name in page.text
        for tag, attributes in page.tags:
            assert (tag == "img", "onerror" in attributes, tag == "script" and "src" not in attributes) == (False,) * 3


def test_a_big_tree_is_drawn_in_part(visitor: Visitor, app: Flask):
    parts = [provider(f"part{number:03}", SRIOV_NET_VF=1) for number in range(100)]
    stored(app, provider("big", *parts, VCPU=8))
    page = asked(visitor, "resources=VCPU:1")
    assert "100 more part000" in page.text
    assert "60 are not drawn" in page.text
    last = asked(visitor, "resources=VCPU:1&resources_A=SRIOV_NET_VF:1&limit=1")
    assert "serves _A 1 SRIOV_NET_VF" in last.text


def test_a_group_without_resources_is_drawn_too(visitor: Visitor, app: Flask):
    stored(app, provider("host", provider("numa", VCPU=4), traits=("CUSTOM_RACK",)))
    page = asked(visitor, "resources_C=VCPU:1&required_R=CUSTOM_RACK&same_subtree=_C,_R&group_policy=none")
    assert "host serves _R" in page.text


def test_nothing_on_this_page_writes(visitor: Visitor, app: Flask, cloud: clouds.Cloud):
    database = app.extensions["placement"].database
    database.writer.dispose()
    before = Api(app)("GET", "/resource_providers", "1.39")
    asked(visitor, GPU)
    assert Api(app)("GET", "/resource_providers", "1.39") == before
