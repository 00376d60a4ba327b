"""GET /allocation_candidates: where could this request be served? The JSON is streamed while it is being written.

An answer may have tens of thousands of candidates that differ only in their uuids, and thousands of providers with
equal stock. Writing recurring text once, instead of building a dictionary per candidate, is many times as fast; a test
compares the result with plainly built dictionaries.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from time import perf_counter
from typing import TypeVar

from flask import Response

from placement.api.call import JSON, Call, answer_in_pieces
from placement.api.candidate_query import KEYS, candidate_request
from placement.api.routing import Route
from placement.api.versions import Version
from placement.candidates.explain.explanation import cause_in_words
from placement.candidates.fragmentation import host_demands
from placement.candidates.search import Candidate
from placement.domain.quantities import whole_capacity
from placement.domain.search_plan import CandidateRequest, Plan
from placement.errors import OutOfSteps
from placement.services.allocation_candidates import Answer, CandidateQuestion, allocation_candidates
from placement.services.answer_texts import TextsOfTree, WrittenAnswer, WrittenForm, candidates_or_texts
from placement.store.search.names import StockRow, Summaries, TreeMember
from placement.telemetry.record import SearchSeen

Part = TypeVar("Part")

AT_ONCE = 2_000
"""How many candidates or summaries to write at once: about a megabyte."""


def candidates_json(answer: Answer, version: Version, *, at_once: int = AT_ONCE) -> Iterator[bytes]:
    """Yield the answer in the form of a microversion, ``at_once`` candidates or summaries at a time."""
    uuids = _quoted_uuids(answer)
    requests = _Requests(answer.plan, uuids, version)
    texts = (_texts(portion, requests) for portion in _portions(answer.candidates, at_once))
    summaries = _summaries(_shown(answer, version), answer, uuids, version)
    return _answer_json(texts, _portions(summaries, at_once))


def written_json(answer: WrittenAnswer) -> Iterator[bytes]:
    """Yield the JSON of an answer whose trees are already written."""
    return _answer_json([answer.candidates], [answer.providers])


def texts_by_tree(answer: Answer, version: Version) -> dict[int, TextsOfTree]:
    """Return an answer whose trees share nothing as text per tree, by root id; from 1.29 on."""
    uuids = _quoted_uuids(answer)
    requests = _Requests(answer.plan, uuids, version)
    candidates: dict[int, list[str]] = defaultdict(list)
    for root, choice in answer.candidates:
        candidates[root].append(requests.text(choice))
    providers: dict[int, list[str]] = defaultdict(list)
    shown = _shown(answer, version)
    for member, text in zip(shown, _summaries(shown, answer, uuids, version), strict=True):
        providers[member.root_id].append(text)
    return {root: TextsOfTree(tuple(texts), ",".join(providers[root])) for root, texts in candidates.items()}


def _quoted_uuids(answer: Answer) -> dict[int, str]:
    # Uuids and the names of classes and traits contain nothing that JSON escapes.
    return {id_: f'"{member.uuid}"' for id_, member in answer.providers.members.items()}


def _answer_json(candidates: Iterable[Sequence[str]], summaries: Iterable[Sequence[str]]) -> Iterator[bytes]:
    yield from _listed('{"allocation_requests":[', candidates)
    yield from _listed('],"provider_summaries":{', summaries)
    yield b"}}"


def _listed(head: str, portions: Iterable[Sequence[str]]) -> Iterator[bytes]:
    """Yield the head, then all texts separated by commas; one piece per portion."""
    before = head
    for portion in portions:
        yield (before + ",".join(portion)).encode()
        before = ","
    if before == head:
        yield head.encode()


def _portions(whole: Sequence[Part], size: int) -> Iterator[Sequence[Part]]:
    return (whole[start : start + size] for start in range(0, len(whole), size))


def _texts(candidates: Sequence[Candidate], requests: "_Requests") -> list[str]:
    """Return the text of each candidate, written tree by tree so that recurring data is still in the CPU's cache."""
    texts = [""] * len(candidates)
    roots = [root for root, _choice in candidates]
    for index in sorted(range(len(candidates)), key=roots.__getitem__):
        texts[index] = requests.text(candidates[index][1])
    return texts


class _Requests:
    """Writes the candidates of one plan.

    A candidate's *pattern* says which slots share a provider. Candidates of one pattern differ only in their uuids, so
    each pattern is rendered once, as a template with gaps for uuids.
    """

    def __init__(self, plan: Plan, uuids: Mapping[int, str], version: Version) -> None:
        self._slots = plan.slots
        self._uuids = uuids
        self._as_list = version < (1, 12)
        self._with_mappings = version >= (1, 34)
        self._templates: dict[tuple[int, ...], tuple[str, list[int]]] = {}

    def text(self, choice: tuple[int, ...]) -> str:
        """Return one candidate in the form that PUT /allocations accepts at the same microversion."""
        pattern = tuple(map(choice.index, choice))
        cached = self._templates.get(pattern)
        if cached is None:
            cached = self._templates[pattern] = self._template(pattern)
        template, slots = cached
        # A list is faster than a generator here, and this runs for every candidate.
        return template % tuple([self._uuids[choice[slot]] for slot in slots])

    def _template(self, pattern: tuple[int, ...]) -> tuple[str, list[int]]:
        """Return the template of a pattern, and the slots whose providers' uuids fill its gaps, in order.

        A pattern gives, for each slot, the first slot served by the same provider.
        """
        amounts = self._amounts(pattern)
        taken = ",".join([self._taken(of_provider) for of_provider in amounts.values()])
        text = '{"allocations":' + (f"[{taken}]" if self._as_list else f"{{{taken}}}")
        if not self._with_mappings:
            return text + "}", list(amounts)
        served = self._served(pattern)
        mappings = ",".join([f'"{suffix}":[{",".join(["%s"] * len(slots))}]' for suffix, slots in served.items()])
        return f'{text},"mappings":{{{mappings}}}}}', [*amounts, *chain.from_iterable(served.values())]

    def _amounts(self, pattern: tuple[int, ...]) -> dict[int, dict[str, int]]:
        """Return the amounts taken from each provider, by the first slot that it serves."""
        amounts: dict[int, dict[str, int]] = {}
        for slot, provider in zip(self._slots, pattern, strict=True):
            for name, amount in slot.resources:
                taken = amounts.setdefault(provider, {})
                taken[name] = taken.get(name, 0) + amount
        return amounts

    def _served(self, pattern: tuple[int, ...]) -> dict[str, list[int]]:
        """Return which providers serve each group, without repeats; the unsuffixed group comes last."""
        served: dict[str, list[int]] = {}
        for slot, provider in sorted(zip(self._slots, pattern, strict=True), key=lambda pair: not pair[0].is_granular):
            providers = served.setdefault(slot.suffix, [])
            if provider not in providers:
                providers.append(provider)
        return served

    def _taken(self, amounts: Mapping[str, int]) -> str:
        resources = ",".join([f'"{name}":{amount}' for name, amount in amounts.items()])
        if self._as_list:
            return f'{{"resource_provider":{{"uuid":%s}},"resources":{{{resources}}}}}'
        return f'%s:{{"resources":{{{resources}}}}}'


def _shown(answer: Answer, version: Version) -> list[TreeMember]:
    """Return the providers to summarise: from 1.29 on, all of the candidates' trees; before, only those that serve."""
    members = answer.providers.members
    if version >= (1, 29):
        return [member for member in members.values() if member.root_id in answer.taken_from]
    serving = {provider for _root, choice in answer.candidates for provider in choice} | answer.serving_others
    return [member for id_, member in members.items() if id_ in serving]


def _summaries(shown: Sequence[TreeMember], answer: Answer, uuids: Mapping[int, str], version: Version) -> list[str]:
    resources = _resources(answer, version).get
    if version < (1, 17):
        return [f'{uuids[id_]}:{{"resources":{{{resources(id_, "")}}}}}' for id_, *_ in shown]
    traits = _traits(answer.providers).get
    if version < (1, 29):
        return [
            f'{uuids[id_]}:{{"resources":{{{resources(id_, "")}}},"traits":[{traits(id_, "")}]}}' for id_, *_ in shown
        ]
    return [
        f'{uuids[id_]}:{{"resources":{{{resources(id_, "")}}},"traits":[{traits(id_, "")}],'
        f'"parent_provider_uuid":{uuids[parent] if parent else "null"},"root_provider_uuid":{uuids[root]}}}'
        for id_, _uuid, root, parent in shown
    ]


def _resources(answer: Answer, version: Version) -> dict[int, str]:
    """Return each provider's capacity and usage; before 1.27, only of the requested classes."""
    requested = {name for slot in answer.plan.slots for name, _amount in slot.resources}
    names = {
        id_: f'"{name}"'
        for id_, name in answer.providers.class_names.items()
        if version >= (1, 27) or name in requested
    }

    @cache  # many hosts of a cloud have the same stock and traits
    def text(stock: StockRow) -> str:
        class_id, total, reserved, ratio, used = stock
        if class_id not in names:
            return ""
        return f'{names[class_id]}:{{"capacity":{whole_capacity(total, reserved, ratio)},"used":{int(used)}}}'

    members, stocks = answer.providers.members, answer.providers.stocks
    # Providers outside the answer's trees may have been read as well.
    return {id_: ",".join(filter(None, map(text, rows))) for id_, rows in stocks.items() if id_ in members}


def _traits(providers: Summaries) -> dict[int, str]:
    """Return the traits of each provider that has any."""
    names = providers.trait_names
    text = cache(lambda ids: ",".join([f'"{names[id_]}"' for id_ in ids]))
    return {id_: text(tuple(ids)) for id_, ids in providers.traits.items()}


LOG = logging.getLogger(__name__)

SEARCH_HEADER = "x-placement-search"
"""``incomplete`` on an answer whose search hit its budget."""


def list_candidates(call: Call) -> Response:
    """List allocation candidates with summaries of their providers."""
    request = candidate_request(call.query, call.version)
    began = perf_counter()
    answer = _answer(call, request, began)
    if isinstance(answer, WrittenAnswer):
        return _dated(call, written_json(answer))
    if answer.cause is not None:
        call.server.meters.found_nothing(answer.cause.kind.value)
        LOG.info("There are no allocation candidates. %s", cause_in_words(answer.cause))
    elif answer.candidates and (judge := call.server.judge):
        judge.note_asked(host_demands(answer.plan))
    response = _dated(call, candidates_json(answer, call.version))
    if not answer.complete:
        response.headers[SEARCH_HEADER] = "incomplete"
    return response


def _dated(call: Call, pieces: Iterator[bytes]) -> Response:
    response = answer_in_pieces(call.request, pieces, JSON)
    call.date(response, None)
    return response


def _answer(call: Call, request: CandidateRequest, began: float) -> Answer | WrittenAnswer:
    """Answer, and report to the metrics what was seen since ``began``, even if the search ran out of steps."""
    server, ranking = call.server, call.ranking
    question = CandidateQuestion(request, server.search, ranking, server.judge)
    answer: Answer | WrittenAnswer
    try:
        if ranking is not None and call.since(29):  # Before, the limit may influence what a tree shows.
            name, write = (call.version, call.request.query_string), partial(texts_by_tree, version=call.version)
            answer = candidates_or_texts(call.database, question, WrittenForm(name, write))
        else:
            answer = allocation_candidates(call.database, question)
    except OutOfSteps:
        server.meters.searched(SearchSeen(perf_counter() - began, trees=0, candidates=0, complete=False))
        raise
    server.meters.searched(_search_seen(answer, perf_counter() - began))
    return answer


def _search_seen(answer: Answer | WrittenAnswer, duration_s: float) -> SearchSeen:
    if isinstance(answer, WrittenAnswer):
        trees, candidates = len(answer.providers), len(answer.candidates)
        return SearchSeen(duration_s, trees, candidates, complete=True, from_cache=True)
    trees = len({root for root, _choice in answer.candidates})
    return SearchSeen(duration_s, trees, len(answer.candidates), answer.complete)


RULE = "placement:allocation_candidates:list"
ROUTES = (
    Route("GET", "/allocation_candidates", list_candidates, rule=RULE, since=(1, 10), answers_json=True, query=KEYS),
)
