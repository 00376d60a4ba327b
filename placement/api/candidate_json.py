"""The JSON of an answer to GET /allocation_candidates, written piece by piece.

An answer may have tens of thousands of candidates that repeat the same few hundred pieces ("this group on that
provider"). So pieces are written once and joined, instead of building a dictionary for each candidate: four times
as fast, and a test holds the result against plainly built dictionaries.
"""

from collections.abc import Callable, Iterable

from placement.api.versions import Version
from placement.services.allocation_candidates import Answer, Plan, Stock, Summaries

Amounts = dict[int, dict[str, int]]
"""What is taken from each provider, by class."""


def candidates_json(answer: Answer, version: Version) -> bytes:
    """Return the whole answer in the form of a microversion."""
    # Uuids and names of classes and traits are hexadecimal digits, A-Z and the like: nothing to escape.
    uuids = {id_: f'"{member.uuid}"' for id_, member in answer.providers.members.items()}
    requests = _Requests(answer.plan, uuids, version)
    texts = ",".join([requests.text(choice) for _root, choice in answer.candidates])
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
        return lambda provider: f'"{suffix}":[{self._uuids[provider]}]'

    def _provider(self, provider: int, amounts: Iterable[tuple[str, int]]) -> str:
        resources = ",".join([f'"{name}":{amount}' for name, amount in amounts])
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


def _summaries(answer: Answer, uuids: dict[int, str], version: Version) -> list[str]:
    """Return the summaries: from 1.29 of all providers of the trees taken from, before of those taken from alone."""
    members = answer.providers.members
    if version >= (1, 29):
        shown = [member for member in members.values() if member.root_id in answer.taken_from]
    else:
        used = {provider for _root, choice in answer.candidates for provider in choice}
        shown = [member for id_, member in members.items() if id_ in used]
    writer = _Summary(answer.plan, answer.providers, version)
    if version < (1, 29):
        return [f"{uuids[member.id]}:{{{writer.text(member.id)}}}" for member in shown]
    return [
        f'{uuids[id_]}:{{{writer.text(id_)},"parent_provider_uuid":{uuids[parent] if parent else "null"},'
        f'"root_provider_uuid":{uuids[root]}}}'
        for id_, _uuid, root, parent in shown
    ]


class _Summary:
    """Writes what one provider has and is; before 1.27 only the classes that the request asks for."""

    def __init__(self, plan: Plan, providers: Summaries, version: Version) -> None:
        self._providers = providers
        self._with_all = version >= (1, 27)
        self._with_traits = version >= (1, 17)
        self._asked = {name for slot in plan.slots for name, _amount in slot.resources}
        self._stock_texts: dict[Stock, str] = {}
        self._trait_texts: dict[tuple[int, ...], str] = {}

    def text(self, provider: int) -> str:
        """Return the resources, and from 1.17 the traits."""
        stocks = self._providers.stocks.get(provider, ())
        resources = f'"resources":{{{",".join(filter(None, map(self._stock, stocks)))}}}'
        if not self._with_traits:
            return resources
        return resources + self._traits(tuple(self._providers.traits.get(provider, ())))

    def _stock(self, stock: Stock) -> str:
        # Hosts of a cloud are much alike, so most texts are needed again.
        text = self._stock_texts.get(stock)
        if text is None:
            text = self._stock_texts[stock] = self._written(*stock)
        return text

    def _written(self, class_id: int, total: int, reserved: int, ratio: float, used: int) -> str:  # noqa: PLR0917 - a Stock
        name = self._providers.class_names[class_id]
        if not self._with_all and name not in self._asked:
            return ""
        return f'"{name}":{{"capacity":{int((total - reserved) * ratio)},"used":{int(used)}}}'

    def _traits(self, ids: tuple[int, ...]) -> str:
        text = self._trait_texts.get(ids)
        if text is None:
            names = ",".join([f'"{self._providers.trait_names[id_]}"' for id_ in ids])
            text = self._trait_texts[ids] = f',"traits":[{names}]'
        return text
