"""What hosts gave is kept by request and form, and only if it is final."""

from dataclasses import replace

from placement.allocators.fragmentation import FragmentationSettings
from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.compose.proposals import Proposal, Proposals
from placement.candidates.host_sketches import HostSketch
from placement.candidates.planner.kept_proposals import FoundInHost, KeptProposals
from placement.cloud.derived import Derived
from placement.domain.candidate_request import RequestGroup
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.services.cloud_cache import CloudCache
from placement.services.fragmentation import FragmentationJudge
from placement.services.planner.composers import PlannerOptions

LEVELS = {"pcie": "CUSTOM_SWITCH"}
HOST, OTHER = HostSketch(("form",), (1, 2)), HostSketch(("other form",), (3, 4))
FOUND = Proposals([Proposal(1, {2: {"PGPU": 1}}, {"_A": (2,)})])


def asked(amount: int) -> PlannerRequest:
    group = RequestGroup(suffix="_A", resources={"PGPU": amount})
    return PlannerRequest(groups=(PlannerGroup(group=group),))


def test_equal_requests_share_what_hosts_gave_and_others_do_not() -> None:
    options = PlannerOptions(RankingProfile(), LEVELS, {}, cache=CloudCache())
    kept = options.kept_for(asked(1))
    assert kept is not None
    kept.remember(FoundInHost(HOST, FOUND))
    for equal in (options, replace(options, profile=RankingProfile("another"))):
        again = equal.kept_for(asked(1))
        assert again is not None
        assert again.get(HOST.form) == (HOST, FOUND)
        assert again.get(OTHER.form) is None
    further = replace(options, locks={"pcie": "CUSTOM_LOCK"}), replace(options, levels={})
    for other in (options.kept_for(asked(2)), *[of.kept_for(asked(1)) for of in further]):
        assert other is not None
        assert other.get(HOST.form) is None


def test_what_a_longer_search_might_improve_is_not_kept() -> None:
    kept = KeptProposals(Derived(), "asked")
    kept.remember(FoundInHost(HOST, Proposals(FOUND.found, complete=False)))
    assert kept.get(HOST.form) is None
    kept.remember(FoundInHost(HOST, Proposals()))
    assert kept.get(HOST.form) == (HOST, Proposals())


def test_nothing_is_kept_where_devices_are_judged_by_what_is_free_elsewhere() -> None:
    options = PlannerOptions(RankingProfile(), {}, {}, cache=CloudCache())
    judge = FragmentationJudge(FragmentationSettings(devices="PGPU"))
    assert replace(options, judge=judge).kept_for(asked(1)) is None
