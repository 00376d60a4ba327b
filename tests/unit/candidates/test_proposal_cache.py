"""Each host's proposals are cached by request and form, within the size limit, and only if they are final."""

from dataclasses import replace

from placement.allocators.fragmentation import FragmentationSettings
from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.compose.proposals import Proposal, Proposals
from placement.candidates.host_sketches import HostSketch
from placement.domain.candidate_request import RequestGroup
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.services.fragmentation import FragmentationJudge
from placement.services.planner.composers import PlannerOptions
from placement.services.planner.proposal_cache import AskedFor, ProposalCache

LEVELS = Levels(("pcie",), ("CUSTOM_SWITCH",))
HOST, OTHER = HostSketch(("form",), (1, 2)), HostSketch(("other form",), (3, 4))
FOUND = Proposals([Proposal(1, {2: {"PGPU": 1}}, {"_A": (2,)})])


def asked(amount: int, *, locks: dict[str, str] | None = None) -> AskedFor:
    group = RequestGroup(suffix="_A", resources={"PGPU": amount})
    return AskedFor(PlannerRequest(groups=(PlannerGroup(group=group),)), LEVELS, locks or {})


def test_equal_requests_share_what_hosts_gave_and_others_do_not() -> None:
    cache = ProposalCache()
    cache.of(asked(1)).remember(HOST, FOUND)
    assert cache.of(asked(1)).get(HOST.form) == (HOST, FOUND)
    for other in (asked(2), asked(1, locks={"pcie": "CUSTOM_LOCK"}), asked(1)._replace(levels=Levels((), ()))):
        assert cache.of(other).get(HOST.form) is None
    assert cache.of(asked(1)).get(OTHER.form) is None


def test_what_a_longer_search_might_improve_is_not_kept() -> None:
    cache = ProposalCache().of(asked(1))
    cache.remember(HOST, Proposals(FOUND.found, complete=False))
    assert cache.get(HOST.form) is None
    cache.remember(HOST, Proposals())
    assert cache.get(HOST.form) == (HOST, Proposals())


def test_the_hosts_that_were_not_asked_for_longest_are_forgotten() -> None:
    cache = ProposalCache(most_providers=4).of(asked(1))
    last = HostSketch(("last form",), (5,))
    for host in (HOST, OTHER, HOST):
        cache.remember(host, FOUND)
    assert cache.get(HOST.form)
    cache.remember(last, FOUND)
    assert [cache.get(host.form) is not None for host in (HOST, OTHER, last)] == [True, False, True]


def test_a_request_that_was_forgotten_begins_anew() -> None:
    cache = ProposalCache(most_requests=2)
    for amount in (1, 2, 1):
        cache.of(asked(amount)).remember(HOST, FOUND)
    cache.of(asked(3))
    assert [cache.of(asked(amount)).get(HOST.form) is None for amount in (1, 2)] == [False, True]


def test_nothing_is_kept_where_devices_are_judged_by_what_is_free_elsewhere() -> None:
    options = PlannerOptions(RankingProfile(), {}, {}, proposals=ProposalCache())
    assert options.cached_for(asked(1).request)
    judge = FragmentationJudge(FragmentationSettings(devices="PGPU"))
    assert replace(options, judge=judge).cached_for(asked(1).request) is None
