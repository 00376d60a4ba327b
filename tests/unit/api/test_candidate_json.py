"""The JSON of candidates, written in pieces, compared with dictionaries built the plain way."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from placement.api.allocation_candidates import candidates_json
from placement.api.versions import Version
from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for
from placement.services.allocation_candidates import Answer
from placement.store.search.summaries import Summaries, TreeMember
from tests.examples import examples

NAMES = {1: "VCPU", 2: "DISK_GB"}
TRAITS = {7: "HW_NUMA_ROOT", 8: "CUSTOM_A"}
MEMBERS = {1: TreeMember(1, "u1", 1, None), 2: TreeMember(2, "u2", 1, 1), 3: TreeMember(3, "u3", 3, None)}
STOCKS = {1: [(1, 5, 1, 2.0, 2), (2, 10, 0, 1.0, 0)], 2: [(1, 4, 0, 1.0, 0)]}
SUMMARIES = Summaries(MEMBERS, STOCKS, {1: [7, 8], 3: [8]}, NAMES, TRAITS)

resources = st.dictionaries(st.sampled_from(["VCPU", "DISK_GB", "MEMORY_MB"]), st.integers(1, 3), min_size=1)


@st.composite
def answers(draw) -> Answer:
    groups = [RequestGroup(resources=draw(resources))] if draw(st.booleans()) else []
    suffixes = draw(st.lists(st.sampled_from(["1", "_A", "-b"]), unique=True, min_size=0 if groups else 1))
    groups += [RequestGroup(suffix=suffix, resources=draw(st.one_of(st.just({}), resources))) for suffix in suffixes]
    plan = plan_for(CandidateRequest(groups=tuple(groups)))
    choices = draw(st.lists(st.tuples(*[st.sampled_from([1, 2, 3]) for _ in plan.slots]), max_size=4))
    roots = frozenset(draw(st.sets(st.sampled_from([1, 3]))))
    return Answer(plan, [(1, choice) for choice in choices], SUMMARIES, roots)


def plain_request(answer: Answer, choice: tuple[int, ...], version: Version) -> dict:
    amounts, mappings = {}, {}
    for slot, provider in zip(answer.plan.slots, choice, strict=True):
        uuid = MEMBERS[provider].uuid
        for name, amount in slot.resources:
            taken = amounts.setdefault(uuid, {})
            taken[name] = taken.get(name, 0) + amount
        serving = mappings.setdefault(slot.suffix, [])
        if uuid not in serving:
            serving.append(uuid)
    if version < (1, 12):
        return {"allocations": [{"resource_provider": {"uuid": u}, "resources": r} for u, r in amounts.items()]}
    document = {"allocations": {uuid: {"resources": taken} for uuid, taken in amounts.items()}}
    return document | ({"mappings": mappings} if version >= (1, 34) else {})


def plain_summaries(answer: Answer, version: Version) -> dict:
    used = {provider for _root, choice in answer.candidates for provider in choice}
    asked = {name for slot in answer.plan.slots for name, _ in slot.resources}
    shown = {}
    for provider in MEMBERS.values():
        if provider.root_id in answer.taken_from if version >= (1, 29) else provider.id in used:
            document = {
                "resources": {
                    NAMES[id_]: {"capacity": int((total - reserved) * ratio), "used": taken}
                    for id_, total, reserved, ratio, taken in STOCKS.get(provider.id, ())
                    if version >= (1, 27) or NAMES[id_] in asked
                }
            }
            if version >= (1, 17):
                document["traits"] = [TRAITS[id_] for id_ in SUMMARIES.traits.get(provider.id, ())]
            if version >= (1, 29):
                parent = provider.parent_id
                document["parent_provider_uuid"] = MEMBERS[parent].uuid if parent else None
                document["root_provider_uuid"] = MEMBERS[provider.root_id].uuid
            shown[provider.uuid] = document
    return shown


MINOR_VERSIONS = [10, 12, 16, 17, 26, 27, 28, 29, 33, 34, 39]


@examples(80)
@given(
    answers(),
    st.integers(1, 4),
    st.sampled_from(MINOR_VERSIONS).map(lambda minor: Version(1, minor)),
)
def test_pieces_give_the_same_document_as_dictionaries(answer, at_once, version):
    assert orjson.loads(b"".join(candidates_json(answer, version, at_once=at_once))) == {
        "allocation_requests": [plain_request(answer, choice, version) for _root, choice in answer.candidates],
        "provider_summaries": plain_summaries(answer, version),
    }
