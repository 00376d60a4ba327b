"""The mix of work, learnt from requests and what was allocated for them.

Allocations do not show which kinds of device would have been acceptable, and a scheduler may ask many times before it
takes anything. So both are counted: allocations say how frequent work of each size is, and requests which kinds it
insists on. What was counted loses half its weight in each half-life.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from placement.allocators.fragmentation.hosts import DeviceTask, TaskForm

Work = tuple[TaskForm, ...]
"""What one request takes of a host: tasks, the largest share first. Its size is the same without kinds."""

HALF_LIFE_S = 14 * 24 * 3600.0
MOST_FORMS = 1000
"""The most sizes to remember, and the most forms of requests."""

LEAST_WEIGHT = 0.001
DIGITS = 4
ANY_KIND = frozenset[str]()

WorkWeights = defaultdict[Work, float]


def work_of(tasks: Iterable[DeviceTask]) -> Work:
    """Return the form of tasks that ask for something."""
    return tuple([task.form for task in tasks if task.devices or task.amounts])


def size_of(work: Work) -> Work:
    """Return work without the kinds it insists on.

    >>> size_of((((("VCPU", 4),), 1, 500, frozenset({"A"})), ((), 1, 500, frozenset({"B"}))))
    (((('VCPU', 4),), 2, 500, frozenset()),)
    """
    devices: Counter[int] = Counter()
    for _amounts, number, share, _kinds in work:
        devices[share] += number
    amounts = tuple([item for task in work for item in task[0]])
    sizes = [(number, share, ANY_KIND) for share, number in sorted(devices.items(), reverse=True)]
    return tuple([(() if place else amounts, *size) for place, size in enumerate(sizes)])


class LearntMix:
    """Counts of work. Not safe for threads."""

    def __init__(self, since: float) -> None:
        self.since = since
        self._at = since
        self._asked: WorkWeights = defaultdict(float)
        self._allocated: WorkWeights = defaultdict(float)

    @property
    def total(self) -> float:
        """How much was allocated, in allocations of now."""
        return sum(self._allocated.values())

    @property
    def is_empty(self) -> bool:
        """Whether nothing was counted."""
        return not (self._asked or self._allocated)

    def note_asked(self, work: Work) -> None:
        """Count a request that could be served."""
        if work in self._asked or len(self._asked) < MOST_FORMS:
            self._asked[work] += 1

    def note_allocated(self, size: Work) -> None:
        """Count an allocation of this size."""
        if size in self._allocated or len(self._allocated) < MOST_FORMS:
            self._allocated[size] += 1

    def add(self, news: "LearntMix", now: float) -> None:
        """Let what is known age until now, add what is new, and forget what is rare."""
        factor = 0.5 ** (max(0.0, now - self._at) / HALF_LIFE_S)
        self._at = max(now, self._at)
        for old, new in ((self._allocated, news._allocated), (self._asked, news._asked)):
            for work in old:
                old[work] *= factor
            for work, often in new.items():
                old[work] += often
        allocated, asked = self._allocated, self._asked
        self._allocated = _first(allocated, sorted(allocated, key=lambda size: -allocated[size]))
        self._asked = _first(asked, sorted(asked, key=lambda work: (-allocated[size_of(work)], -asked[work])))

    def expected(self, limit: int) -> dict[DeviceTask, float]:
        """Return how often each task was allocated, the most frequent first."""
        requests: dict[Work, dict[Work, float]] = defaultdict(dict)
        for work, often in self._asked.items():
            requests[size_of(work)][work] = often
        weights: dict[TaskForm, float] = defaultdict(float)
        for size, allocated in self._allocated.items():
            works = requests.get(size) or {size: 1.0}
            total = sum(works.values())
            for work, often in works.items():
                for form in work:
                    weights[form] += allocated * often / total
        forms = sorted(weights, key=lambda form: -weights[form])[:limit]
        return {_task(*form): weights[form] for form in forms}

    def document(self) -> dict[str, Any]:
        """Return all of this as JSON."""
        return {
            "since": self.since,
            "at": self._at,
            "asked": _listed(self._asked),
            "allocated": _listed(self._allocated),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "LearntMix":
        """Return what ``document`` returned as JSON."""
        mix = cls(document["since"])
        mix._at = document["at"]
        mix._asked, mix._allocated = _weights(document["asked"]), _weights(document["allocated"])
        return mix


def _first(weights: Mapping[Work, float], works: Sequence[Work]) -> WorkWeights:
    """Return the weights of the first of some works, in this order, without those that are as good as 0."""
    return defaultdict(float, {work: weights[work] for work in works[:MOST_FORMS] if weights[work] >= LEAST_WEIGHT})


def _listed(weights: Mapping[Work, float]) -> list[list[Any]]:
    forms = {
        work: [[dict(amounts), number, share, sorted(kinds)] for amounts, number, share, kinds in work]
        for work in weights
    }
    return [[round(often, DIGITS), *forms[work]] for work, often in weights.items()]


def _weights(listed: Iterable[Sequence[Any]]) -> WorkWeights:
    return defaultdict(float, {work_of([_task(*task) for task in tasks]): often for often, *tasks in listed})


def _task(
    amounts: Mapping[str, int] | Iterable[tuple[str, int]], devices: int, share: int, kinds: Iterable[str]
) -> DeviceTask:
    return DeviceTask(dict(amounts), devices, share, frozenset(kinds))
