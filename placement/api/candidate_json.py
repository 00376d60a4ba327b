"""The JSON of an answer to GET /allocation_candidates, written piece by piece.

An answer may have tens of thousands of candidates that repeat the same few hundred pieces ("this group on that
provider"). So pieces are written once and joined, instead of building a dictionary for each candidate: four times
as fast, and a test holds the result against plainly built dictionaries.
"""

from collections.abc import Callable, Iterable, Iterator

import orjson

from placement.api.versions import Version
from placement.services.allocation_candidates import Answer, Plan, Summary

Amounts = dict[int, dict[str, int]]
"""What is taken from each provider, by class."""


def quoted(text: str) -> str:
    """Return a string as JSON."""
    return orjson.dumps(text).decode()


def candidates_json(answer: Answer, version: Version) -> bytes:
    """Return the whole answer in the form of a microversion."""
    uuids = {id_: quoted(provider.uuid) for id_, provider in answer.providers.items()}
    requests = _Requests(answer.plan, uuids, version)
    texts = ",".join([requests.text(candidate.choice) for candidate in answer.candidates])
    summaries = ",".join(_summaries(answer, uuids, version))
    return f'{{"allocation_requests":[{texts}],"provider_summaries":{{{summaries}}}}}'.encode()


class _Pieces(dict[int, str]):
    """Text by provider, written when it is first asked for."""

    def __init__(self, write: Callable[[int], str]) -> None:
        super().__init__()
        self._write = write

    def __missing__(self, provider: int) -> str:
        text = self[provider] = self._write(provider)
        return text


class _Requests:
    """Writes the candidates of one plan.

    The slots of the unsuffixed group belong together; every other slot is a group of its own. As long as no two
    groups meet on one provider, a candidate is the pieces of its groups side by side.
    """

    def __init__(self, plan: Plan, uuids: dict[int, str], version: Version) -> None:
        self._plan = plan
        self._uuids = uuids
        self._as_list = version < (1, 12)
        self._with_mappings = version >= (1, 34)
        self._loose = [index for index, slot in enumerate(plan.slots) if not slot.is_granular]
        self._granular = [index for index, slot in enumerate(plan.slots) if slot.is_granular]
        self._taken = [_Pieces(self._taker(index)) for index in range(len(plan.slots))]
        self._served = [_Pieces(self._server(slot.suffix)) for slot in plan.slots]

    def text(self, choice: tuple[int, ...]) -> str:
        """Return one candidate, in the form that PUT /allocations takes at the same microversion."""
        taken = self._side_by_side(choice) if self._are_apart(choice) else self._merged(choice)
        allocations = f"[{taken}]" if self._as_list else f"{{{taken}}}"
        if not self._with_mappings:
            return f'{{"allocations":{allocations}}}'
        return f'{{"allocations":{allocations},"mappings":{{{self._mappings(choice)}}}}}'

    def _are_apart(self, choice: tuple[int, ...]) -> bool:
        """Tell whether no two slots share a provider, so that nothing has to be added up."""
        return len(choice) == 1 or len(set(choice)) == len(choice)

    def _side_by_side(self, choice: tuple[int, ...]) -> str:
        pieces = [of_slot[provider] for of_slot, provider in zip(self._taken, choice, strict=True)]
        return ",".join([piece for piece in pieces if piece])

    def _merged(self, choice: tuple[int, ...]) -> str:
        amounts: Amounts = {}
        for slot, provider in zip(self._plan.slots, choice, strict=True):
            for name, amount in slot.resources:
                taken = amounts.setdefault(provider, {})
                taken[name] = taken.get(name, 0) + amount
        return ",".join([self._provider(provider, taken.items()) for provider, taken in amounts.items()])

    def _taker(self, index: int) -> Callable[[int], str]:
        resources = self._plan.slots[index].resources
        return lambda provider: self._provider(provider, resources) if resources else ""

    def _server(self, suffix: str) -> Callable[[int], str]:
        return lambda provider: f"{quoted(suffix)}:[{self._uuids[provider]}]"

    def _provider(self, provider: int, amounts: Iterable[tuple[str, int]]) -> str:
        resources = ",".join(f"{quoted(name)}:{amount}" for name, amount in amounts)
        uuid = self._uuids[provider]
        if self._as_list:
            return f'{{"resource_provider":{{"uuid":{uuid}}},"resources":{{{resources}}}}}'
        return f'{uuid}:{{"resources":{{{resources}}}}}'

    def _mappings(self, choice: tuple[int, ...]) -> str:
        """Return which providers serve each group, each once."""
        pieces = [self._served[index][choice[index]] for index in self._granular]
        if self._loose:
            serving = dict.fromkeys(self._uuids[choice[index]] for index in self._loose)
            pieces.append('"":[' + ",".join(serving) + "]")
        return ",".join(pieces)


def _summaries(answer: Answer, uuids: dict[int, str], version: Version) -> Iterator[str]:
    providers = answer.providers
    if version >= (1, 29):
        shown = [provider for provider in providers.values() if provider.root_id in answer.taken_from]
    else:
        used = {provider for candidate in answer.candidates for provider in candidate.choice}
        shown = [provider for id_, provider in providers.items() if id_ in used]
    write = _summary_writer(answer.plan, uuids, version)
    return map(write, shown)


def _summary_writer(plan: Plan, uuids: dict[int, str], version: Version) -> Callable[[Summary], str]:
    """Return what writes one summary; before 1.27 it has only the classes that the request asks for."""
    asked = {name for slot in plan.slots for name, _amount in slot.resources}
    with_all, with_traits, with_tree = version >= (1, 27), version >= (1, 17), version >= (1, 29)

    def write(provider: Summary) -> str:
        resources = ",".join(
            [
                f'"{name}":{{"capacity":{capacity},"used":{used}}}'
                for name, capacity, used in provider.resources
                if with_all or name in asked
            ]
        )
        text = f'{uuids[provider.id]}:{{"resources":{{{resources}}}'
        if with_traits:
            text += f',"traits":[{_names(provider.traits)}]'
        if with_tree:
            parent = "null" if provider.parent_id is None else uuids[provider.parent_id]
            text += f',"parent_provider_uuid":{parent},"root_provider_uuid":{uuids[provider.root_id]}'
        return text + "}"

    return write


def _names(names: list[str]) -> str:
    """Return names as the items of a JSON list; nothing in [A-Z0-9_] needs escaping."""
    return '"' + '","'.join(names) + '"' if names else ""
