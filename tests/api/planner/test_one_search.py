"""Gang members placed by a single search, compared with a search for each of them."""

import random
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import pytest
from flask import Flask

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile, Proportional, Sra
from placement.candidates.planner.member_places import MemberPlaces
from placement.cloud.derived import Derived
from placement.domain.allocation import Claim
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.planner_request import Affinity, Exclusive, PlannerGroup, PlannerRequest, Within
from placement.domain.search_plan import RequestGroup
from placement.services.cloud_cache import CloudCache
from placement.services.planner.gang import ClaimMember, Drafting, by_difficulty, one_by_one
from placement.services.planner.questions import Composers, PlannerOptions
from placement.store.connection.unit_of_work import Transaction, reads
from tests.api.conftest import Api
from tests.claims import ask, new_uuid
from tests.databases import without_caches
from tests.planner_clouds import (
    LEVELS,
    LOCK,
    LOCKS,
    at_work,
    body_of,
    make_names,
    random_cloud,
    random_hosts,
    random_request,
)
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer
from tests.small_clouds import Cloud, load

CLOUDS, MEMBERS = 30, 4

PROFILES = [
    RankingProfile("spread"),
    RankingProfile("pack", Profile(fit=Fit({name: Preference("MostAllocated") for name in ("PGPU", "VCPU")})), 3),
    RankingProfile(
        "scarce",
        Profile(
            fit=Fit({"PGPU": Preference("MostAllocated", 2), "VCPU": Preference("LeastAllocated")}, weight=7),
            sra=Sra({"PGPU": 2, "SRIOV_NET_VF": 1}, weight=5),
            proportional=Proportional({"PGPU": {"VCPU": 2}}, exempt="own"),
        ),
        4,
    ),
    RankingProfile(
        "kept", Profile(fit=Fit(), proportional=Proportional({"PGPU": {"VCPU": 1}}, exempt="own", mode="filter"))
    ),
    RankingProfile("compactness alone", Profile(), 1),
]


class DraftingAnew(Drafting):
    """Plans each member in the whole cloud: the result that one search for all of them has to match."""

    def places_of(self, member: ClaimMember, overlay: Overlay, *, members: int, apart: bool = False) -> MemberPlaces:
        return super().places_of(member, overlay, members=1)


class Drafts(Drafting):
    """Counts the members placed by one search."""

    by_one_search = 0

    def places_of(self, member: ClaimMember, overlay: Overlay, *, members: int, apart: bool = False) -> MemberPlaces:
        places = super().places_of(member, overlay, members=members, apart=apart)
        Drafts.by_one_search += members if places.has_one_line else 0
        return places


@pytest.fixture
def names(app: Flask) -> None:
    """Create the traits and classes of random clouds."""
    make_names(app.extensions["placement"].database)


def modest_request(chance: Random) -> PlannerRequest:
    """Return a request that several members can be placed for: a device, perhaps with something else."""
    device = PlannerGroup(group=RequestGroup(suffix="_A", resources={"PGPU": 1}), count=chance.choice((1, 1, 2)))
    beside = PlannerGroup(group=RequestGroup(suffix="_B", resources={"SRIOV_NET_VF": 1}))
    core = PlannerGroup(group=RequestGroup(suffix="", resources={"VCPU": 1}))
    further = chance.choice(([], [], [beside], [core], [beside, core]))
    level, mode = chance.choice(("numa", "pcie")), chance.random() < 0.3
    rules: dict[str, Any] = {"within": (Within(groups=("_A",), level=level, required=mode),)}
    if beside in further and chance.random() < 0.5:
        rules = {"affinity": (Affinity(primary="_A", secondaries=("_B",), level=level, required=mode),)}
    elif chance.random() < 0.3:
        rules = {"exclusive": (Exclusive(groups=("_A",), level="pcie"),)}
    return PlannerRequest(groups=(device, *further), isolate=chance.random() < 0.5, **rules)


def any_request(chance: Random) -> PlannerRequest:
    return chance.choice((modest_request, modest_request, random_request, random_request, path_request))(chance)


def path_request(chance: Random) -> PlannerRequest:
    """Return a request of hierarchical names: devices on a switch, on one of two, or anywhere."""
    first = chance.choice(("pcie/0/PGPU", "numa/A/pcie/0/PGPU", "PGPU"))
    beside = chance.choice(("VCPU", "pcie/0/SRIOV_NET_VF", "pcie/1/PGPU", "numa/A/VCPU"))
    return PlannerRequest(paths={first: 1, beside: 1}, distinct=chance.random() < 0.5)


def member(request: PlannerRequest, profile: RankingProfile) -> ClaimMember:
    who = Claim(consumer_uuid=new_uuid(), allocations={}, project_id="p", user_id="u", consumer_type="INSTANCE")
    options = PlannerOptions(profile=profile, levels=LEVELS, locks=LOCKS)
    return ClaimMember(who, replace(request, limit=1, per_tree=1), options)


@reads
def placed(tx: Transaction, members: list[ClaimMember], way: type[Drafting], **how: Any) -> list[Any]:
    """Return the allocations of each member, then who found nothing, and whether that is certain."""
    random.seed(1)
    plan = one_by_one(way(tx, Composers(), AS_IT_IS, **how), by_difficulty(members))
    drafts = [(one.member.uuid, one.consumer.allocations, one.mappings, one.alone) for one in plan.drafts]
    return [*drafts, plan.stuck and plan.stuck.uuid, plan.complete]


@pytest.mark.any_database
@pytest.mark.usefixtures("names")
def test_one_search_finds_what_a_search_for_each_would(
    app: Flask, is_long: bool, request: pytest.FixtureRequest
) -> None:
    """Members of different kinds are mixed; some take one of the best at random, some have unit rules.

    Hosts' proposals are cached, completely or partly, while usage changes, and from cloud to cloud.
    """
    first, database = 1000 * request.config.getoption("--seed"), app.extensions["placement"].database
    database.cloud_cache = CloudCache(derived=Derived(2_000_000))
    Drafts.by_one_search = 0
    for seed in range(first, first + CLOUDS * (10 if is_long else 1) // 2):
        chance = Random(seed)
        hosts = random_hosts(chance, chance.randint(3, 8), models=chance.choice((None, 1, 2)))
        cloud = hosts if chance.random() < 0.8 else random_cloud(chance)
        profile = chance.choice(PROFILES)
        kinds = [any_request(chance) for _ in range(chance.choice((1, 1, 2, 3)))]
        members = [member(chance.choice(kinds), profile) for _ in range(chance.randint(2, 10))]
        how = {"among": chance.choice((1, 1, 1, 2, 4)), "checks_units": chance.random() < 0.5}
        for now in (cloud, at_work(chance, cloud), at_work(chance, cloud)):
            load(database, now)
            expected = placed(without_caches(database), members, DraftingAnew, **how)
            assert placed(without_caches(database), members, Drafts, **how) == expected, seed
            assert placed(database, members, Drafts, **how) == expected, seed
    assert Drafts.by_one_search > CLOUDS


@pytest.mark.any_database
@pytest.mark.usefixtures("names")
def test_hosts_with_more_or_less_to_take_are_searched_once_for_all_members(app: Flask) -> None:
    """A host's score then depends on how much a member gets there, and so on what earlier members have left."""
    database = app.extensions["placement"].database
    load(database, random_hosts(Random(6), 12))
    all_of_them = PlannerGroup(group=RequestGroup(suffix="_A", resources={"PGPU": 1}), everything=True)
    core = PlannerGroup(group=RequestGroup(suffix="", resources={"VCPU": 1}))
    members = [member(PlannerRequest(groups=(all_of_them, core)), PROFILES[1]) for _ in range(3)]
    Drafts.by_one_search = 0
    *found, stuck, complete = placed(database, members, Drafts)
    assert [*found, stuck, complete] == placed(database, members, DraftingAnew)
    assert len(found) == len(members)
    assert Drafts.by_one_search == len(members)


class Gang(NamedTuple):
    """How many equal members one search placed, of how many at most; and whether they are proved to be too many."""

    placed: int
    most: int
    is_proven: bool


@reads
def gang(tx: Transaction, members: list[ClaimMember]) -> Gang:
    """Place members one by one."""
    drafting = Drafting(tx, Composers(), AS_IT_IS)
    plan = one_by_one(drafting, members)
    search = drafting.search(members[0], AS_IT_IS)
    return Gang(len(plan.drafts), search.most_in({*search.roots()}, members=len(members)), plan.is_proven)


@pytest.mark.any_database
@pytest.mark.usefixtures("names")
def test_a_few_sums_tell_how_many_members_fit_at_most(app: Flask, request: pytest.FixtureRequest) -> None:
    """Fewer fit where the devices for one more lie in the wrong places."""
    first = 1000 * request.config.getoption("--seed")
    found = []
    for seed in range(first, first + CLOUDS * 2):
        chance = Random(seed)
        load(app.extensions["placement"].database, random_hosts(chance, chance.randint(1, 4)))
        wanted, profile = modest_request(chance), chance.choice(PROFILES)
        members = [member(wanted, profile) for _ in range(chance.randint(2, 20))]
        found.append(gang(app.extensions["placement"].database, members))
        assert found[-1].placed <= found[-1].most, seed
    assert sum(one.is_proven for one in found) > CLOUDS // 2
    assert any(one.placed < one.most for one in found)


@pytest.mark.any_database
@pytest.mark.usefixtures("names")
def test_a_gang_gets_what_single_claims_would_get_one_after_the_other(
    app: Flask, api: Api, request: pytest.FixtureRequest
) -> None:
    """Candidates are requested and allocated, so earlier members' allocations need not be remembered.

    Nor are places without a lock that members hold exclusively: only members of a gang keep out of each other's.
    """
    first = 1000 * request.config.getoption("--seed")
    compared = 0
    # In the first cloud, a member comes back to a tree that another one has taken from.
    for seed in (617986003, *range(first, first + CLOUDS)):
        chance = Random(seed)
        load(app.extensions["placement"].database, cloud := random_hosts(chance, chance.randint(4, 8)))
        wanted = body_of(replace(modest_request(chance), limit=1))
        gang = api.post(CLAIMS, {**wanted, "consumer": consumer(), "members": MEMBERS, "dry_run": True})
        singles = [one for _ in range(MEMBERS) if (one := put_the_best(api, wanted))]
        if len(singles) == MEMBERS and not (wanted.get("exclusive") and has_unlocked_places(cloud)):
            compared += 1
            assert [(one["allocations"], one["mappings"]) for one in gang.json["members"]] == singles, seed
    assert compared > CLOUDS // 4


def has_unlocked_places(cloud: Cloud) -> bool:
    return any(LEVELS["pcie"] in node.traits and LOCK not in node.inventories for node in cloud.values())


def put_the_best(api: Api, wanted: dict[str, Any]) -> tuple[Any, Any] | None:
    """Return what the best candidate takes; None if there is none, or if its sum violates a unit rule."""
    for best in ask(api, "POST", CANDIDATES, body=wanted)["allocation_requests"]:
        owner = {key: value for key, value in consumer().items() if key != "uuid"}
        if api.put(f"/allocations/{new_uuid()}", {**best, **owner}).status_code == 204:
            return best["allocations"], best["mappings"]
    return None
