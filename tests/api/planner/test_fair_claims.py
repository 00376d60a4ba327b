"""POST /planner/v1/claims with ``fair_share``: refused, with the numbers, while others with less are waiting."""

import pytest
from flask import Flask

from tests.api.conftest import Api, with_settings
from tests.claims import ask
from tests.clouds import provider
from tests.planner_hosts import CLAIMS, consumer
from tests.stored_clouds import stored

PLANNER_YAML = """
levels: {gpu: CUSTOM_GPU}
exclusive: {}
fair_share:
  classes: [PGPU]
  keep_s: 0
  tree: {root/eng: {projects: [ann, eve]}, root/sci: {projects: [bob]}}
"""


@pytest.fixture
def planner(api: Api) -> Api:
    """A client of a server with ten GPUs, of which ann holds six."""
    stored(api.app, provider("host", provider("gpus", PGPU=10, traits=["CUSTOM_GPU"]), VCPU=100))
    assert claim(api, "ann", 6).status_code == 201
    return api


def claim(api: Api, project: str, gpus: int, fair_share: object = None, **more: object):
    body = {"groups": {"": {"resources": {"PGPU": gpus}}}, "consumer": consumer(project_id=project), **more}
    return api.post(CLAIMS, body if fair_share is None else {**body, "fair_share": fair_share})


def bob_waits(count: int = 1, **more: object) -> dict[str, object]:
    pending = [{"project_id": "bob", "resources": {"PGPU": 1}, "count": count}]
    return {"enforce": True, "pending": pending, **more}


def said(answer) -> str:
    return str(answer.json["errors"][0]["detail"].splitlines()[-1])


def gpus(api: Api) -> str:
    (found,) = ask(api, "GET", "/resource_providers?name=gpus")["resource_providers"]
    return str(found["uuid"])


def held(api: Api, project: str) -> dict[str, int]:
    usages = ask(api, "GET", f"/usages?project_id={project}")["usages"]
    return {name: amount for of_type in usages.values() for name, amount in of_type.items() if name == "PGPU"}


def test_who_has_more_is_refused_with_the_numbers_and_nothing_is_written(planner: Api) -> None:
    answer = claim(planner, "ann", 2, bob_waits(4))
    assert (answer.status_code, answer.json["errors"][0]["code"]) == (409, "placement.planner.unfair_claim")
    assert said(answer) == (
        "root/eng has more than its fair share while others wait for what is free: its share by weight is 0.6, that of "
        "root/sci is 0. These tasks come before the claim: 4 of root/sci/bob."
    )
    assert held(planner, "ann") == {"PGPU": 6}


def test_the_gate_is_off_unless_it_is_asked_for(planner: Api) -> None:
    assert claim(planner, "ann", 1).status_code == 201
    assert claim(planner, "ann", 1, {**bob_waits(9), "enforce": False}).status_code == 201


def test_a_queue_may_be_limited(planner: Api) -> None:
    limited = {"enforce": True, "limits": {"root/eng": 0.7}}
    assert claim(planner, "eve", 1, limited).status_code == 201
    answer = claim(planner, "eve", 1, limited)
    assert answer.status_code == 409
    assert said(answer) == "With the claim, root/eng would hold 0.8 of a class; it may hold 0.7."
    assert claim(planner, "bob", 1, limited).status_code == 201


def test_what_a_gang_takes_counts_together(planner: Api) -> None:
    assert claim(planner, "ann", 1, bob_waits(2), members=2).status_code == 201
    assert claim(planner, "ann", 1, bob_waits(2), members=2).status_code == 409


def test_the_same_claim_again_gets_its_answer_whoever_waits_meanwhile(planner: Api) -> None:
    body = {"groups": {"": {"resources": {"PGPU": 2}}}, "consumer": consumer(project_id="ann")}
    first = planner.post(CLAIMS, {**body, "fair_share": bob_waits(1)})
    again = planner.post(CLAIMS, {**body, "fair_share": bob_waits(9)})
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json == first.json


def test_who_takes_another_place_of_the_same_size_takes_nothing(planner: Api) -> None:
    """What a consumer gives up for its new place does not count beside it."""
    limited = bob_waits(9, limits={"root/eng": 0.6})
    (of_ann,) = ask(planner, "GET", f"/resource_providers/{gpus(planner)}/allocations")["allocations"]
    moving = {"consumer": consumer(uuid=of_ann, project_id="ann", consumer_generation=1), "replaces": True}
    assert claim(planner, "ann", 6, limited, **moving).status_code == 201
    moving["consumer"]["consumer_generation"] += 1
    answer = claim(planner, "ann", 7, limited, **moving)
    assert (answer.status_code, said(answer)) == (
        409,
        "With the claim, root/eng would hold 0.7 of a class; it may hold 0.6.",
    )
    assert claim(planner, "ann", 5, limited, **moving).status_code == 201


def test_members_of_several_projects_reach_the_limit_of_their_queue_together(planner: Api) -> None:
    limited = {"enforce": True, "limits": {"root/eng": 0.7}}
    members = [{"consumer": consumer(project_id=project)} for project in ("ann", "eve")]
    body = {"groups": {"": {"resources": {"PGPU": 1}}}, "members": members, "fair_share": limited}
    answer = planner.post(CLAIMS, body)
    assert (answer.status_code, said(answer)) == (
        409,
        "With the claim, root/eng would hold 0.8 of a class; it may hold 0.7.",
    )
    assert planner.post(CLAIMS, {**body, "members": members[:1]}).status_code == 201


def test_members_that_have_their_places_keep_their_answer_when_others_are_refused(planner: Api) -> None:
    body = {
        "groups": {"": {"resources": {"PGPU": 1}}},
        "consumer": consumer(project_id="ann"),
        "members": 6,
        "all_or_nothing": False,
    }
    first = planner.post(CLAIMS, {**body, "fair_share": {"enforce": True}})
    (of_ann,) = {*ask(planner, "GET", f"/resource_providers/{gpus(planner)}/allocations")["allocations"]} - {
        member["consumer"]["uuid"] for member in first.json["members"]
    }
    assert planner.delete(f"/allocations/{of_ann}").status_code == 204
    again = planner.post(CLAIMS, {**body, "fair_share": {"enforce": True, "limits": {"root/eng": 0.4}}})
    assert (first.status_code, again.status_code, len(first.json["members"])) == (201, 200, 4)
    assert again.json["members"] == first.json["members"]
    assert [one["code"] for one in again.json["refused"]] == ["placement.planner.unfair_claim"] * 2
    # Those that were placed before do not count again.
    more = planner.post(CLAIMS, {**body, "fair_share": {"enforce": True, "limits": {"root/eng": 0.6}}})
    assert (more.status_code, len(more.json["members"])) == (201, 6)


@pytest.mark.parametrize(
    ("terms", "placed", "reason"),
    [
        (bob_waits(2), 2, "root/eng has more than its fair share while others wait"),
        ({"enforce": True, "limits": {"root/eng": 0.9}}, 3, "root/eng would hold 1 of a class; it may hold 0.9."),
    ],
    ids=["others wait", "a limit"],
)
def test_where_not_all_need_a_place_as_many_get_one_as_are_fair(planner: Api, terms, placed, reason) -> None:
    """Ann has six of ten GPUs and asks for five more one by one; of the four that are left bob needs two."""
    more = {"members": 5, "all_or_nothing": False}
    answer = claim(planner, "ann", 1, terms, **more, dry_run=True)
    assert len(answer.json["members"]) == placed
    answer = claim(planner, "ann", 1, terms, **more)
    assert (answer.status_code, len(answer.json["members"])) == (201, placed)
    assert {one["code"] for one in answer.json["refused"]} == {"placement.planner.unfair_claim"}
    assert reason in answer.json["refused"][0]["detail"]
    assert held(planner, "ann") == {"PGPU": 6 + placed}


@pytest.mark.parametrize("limits", [{}, {"limits": {"root/eng": 0.5}}], ids=["wait", "over the limit"])
def test_what_does_not_count_is_never_refused(planner: Api, limits) -> None:
    body = {"groups": {"": {"resources": {"VCPU": 1}}}, "consumer": consumer(project_id="ann")}
    assert planner.post(CLAIMS, {**body, "fair_share": bob_waits(9, **limits)}).status_code == 201


FORMS = [
    pytest.param({"groups": {"": {"resources": {"PGPU": 1}}}}, id="a group"),
    pytest.param({"paths": {"gpu/0/cards": 1}}, id="a path"),
    pytest.param({"groups": {"_A": {"resources": {"PGPU": 1}, "count": "all"}}}, id="all there are"),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("terms", [bob_waits(4), {"enforce": True, "limits": {"root/eng": 0.6}}], ids=["wait", "limit"])
def test_what_is_taken_counts_whatever_the_words_of_the_request(planner: Api, form, terms) -> None:
    """A path means a base resource, and "all" the existing number; rewording does not change the claim."""
    assert planner.post(CLAIMS, {**form, "consumer": consumer(project_id="ann")}).status_code == 201
    answer = planner.post(CLAIMS, {**form, "consumer": consumer(project_id="ann"), "fair_share": terms})
    assert (answer.status_code, answer.json["errors"][0]["code"]) == (409, "placement.planner.unfair_claim")


@pytest.mark.parametrize("tenths", [1, 3, 7])
def test_a_limit_may_be_held_to_the_last_unit(api: Api, tenths: int) -> None:
    """In binary floating point, one tenth is slightly more than one tenth."""
    stored(api.app, provider("gpus", PGPU=10))
    assert claim(api, "ann", tenths, {"enforce": True, "limits": {"root/eng": tenths / 10}}).status_code == 201


def test_the_limit_of_a_queue_in_the_planner_file_holds(app: Flask) -> None:
    api = with_settings(app, planner_yaml=PLANNER_YAML.replace("eve]", "eve], limit: {PGPU: 4}"))
    stored(api.app, provider("gpus", PGPU=10))
    assert claim(api, "ann", 4, {"enforce": True}).status_code == 201
    answer = claim(api, "ann", 1, {"enforce": True})
    assert (answer.status_code, said(answer)) == (409, "With the claim, root/eng would hold 5 PGPU; its limit is 4.")
