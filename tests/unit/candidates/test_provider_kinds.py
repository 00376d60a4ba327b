"""Which providers an explanation takes for alike."""

from placement.candidates.explain.provider_kinds import ProviderKinds
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.facts import EqualStocks, Facts
from placement.domain.search_plan import plan_for

REQUEST = CandidateRequest(
    groups=(
        RequestGroup(suffix="_A", resources={"VCPU": 4}, forbidden=frozenset({"HW_NUMA_ROOT"})),
        RequestGroup(suffix="_B", resources={"VCPU": 8}),
    )
)


def kinds_of(left: dict[int, float], **facts) -> ProviderKinds:
    """Return the kinds of providers, each the root of its own tree, by what they have left."""
    stocks = [EqualStocks(amount, 1, 100, 1, [provider]) for provider, amount in left.items()]
    cloud = Facts(stocks={"VCPU": stocks}, root_of={provider: provider for provider in left}, **facts)
    return ProviderKinds(cloud, plan_for(REQUEST))


def test_providers_are_alike_if_the_same_amounts_fit():
    kinds = kinds_of({1: 9, 2: 8, 3: 7.5, 4: 4, 5: 3, 6: -1})
    assert kinds.kind_of == {1: 1, 2: 1, 3: 3, 4: 3, 5: 5, 6: 5}
    assert (kinds.count({1, 5}), kinds.trees({1, 5})) == (4, {1, 2, 5, 6})


def test_traits_tell_providers_apart_only_if_the_request_names_them():
    owners = {"HW_NUMA_ROOT": {1, 2}, "CUSTOM_OTHER": {2, 3}}
    assert kinds_of({1: 9, 2: 9, 3: 9, 4: 9}, owners=owners).kind_of == {1: 1, 2: 1, 3: 3, 4: 3}


def test_a_provider_that_shares_is_of_a_kind_of_its_own():
    kinds = kinds_of({1: 9, 2: 9, 3: 9}, shares={2: [1, 3]})
    assert kinds.kind_of == {1: 1, 2: 2, 3: 1}
    assert kinds.trees(own=set(), shared={2}) == {1, 3}
    assert kinds.shared_by_tree == {1: [2], 3: [2]}
