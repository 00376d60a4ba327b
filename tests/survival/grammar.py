"""Requests out of a grammar: proper ones, and proper ones with something broken. A seed and a number give one request.

Proper requests reach the depths that noise never gets to; a broken one is next to a proper one.
"""

import json
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus

from placement.api.routes import ROUTES
from tests.survival.planner_grammar import planner_body

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "PGPU", "SRIOV_NET_VF", "CUSTOM_GOLD", "CUSTOM_NEW")
TRAITS = ("HW_CPU_X86_VMX", "HW_NUMA_ROOT", "CUSTOM_SHINY", "CUSTOM_NEW", "MISC_SHARES_VIA_AGGREGATE")
SUFFIXES = ("", "", "1", "2", "_A", "_B", "-c", "3")
NAMES = ("VCPU", "CUSTOM_GOLD", "CUSTOM_NEW", "CUSTOM_SHINY", "CUSTOM_" + "A" * 248, "CUSTOM_" + "A" * 300, "x", "")
HARD_TEXT = (
    "", " ", "\0", "a" * 300, "a" * 70_000, "9" * 5000, "\N{PILE OF POO}", "\ud800", "%", "%00", "%ff", "../..", "{}",
    "' OR 1=1 --", "in:", "!", "!in:", "!!", ",", ",,", ":", "::", "0", "-1", "1e5", "1_000", "0x1", "NaN", "null",
    "\N{ARABIC-INDIC DIGIT ONE}", "\N{LATIN SMALL LETTER SHARP S}", "CUSTOM_" + "B" * 249, "a\nb", "a\rb", "\u202e",
)  # fmt: skip
HARD_JSON: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 1.0, 1.5, -0.0, 1e-320, 1e308, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30,
    [], [[]], {}, {"": {}}, {"\0": 1}, [None], {"a": {"a": {"a": {}}}}, *HARD_TEXT,
)  # fmt: skip
PATHS = sorted({(route.method, route.path) for route in ROUTES})
REPEATS = (2, 30, 300, 1100)
BROKEN = 0.4
"""How many requests are made worse."""


@dataclass(slots=True)
class Case:
    """A request, complete."""

    method: str
    path: str
    version: str
    query: str = ""
    data: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


class Grammar:
    """Makes requests about a cloud whose providers, consumers and aggregates have these uuids.

    ``generations`` of providers and consumers are to be kept up to date, or most writes are refused.
    """

    def __init__(self, providers: Sequence[str], consumers: Sequence[str], aggregates: Sequence[str]) -> None:
        self.generations: dict[str, int] = {}
        self._uuids = {"provider": providers, "consumer": consumers, "aggregate": aggregates}

    def case(self, seed: int, number: int) -> Case:
        """Return one request, always the same for a seed and a number."""
        return _Sentence(random.Random(f"{seed}:{number}"), self._uuids, self.generations).case()


class _Sentence:
    """One request in the making."""

    def __init__(self, choice: random.Random, uuids: dict[str, Sequence[str]], generations: Mapping[str, int]) -> None:
        self._choice = choice
        self._uuids = uuids
        self._generations = generations
        self._named = ""
        self._is_broken = choice.random() < BROKEN
        self._has_repeated = False

    def case(self) -> Case:
        choice = self._choice
        method, path = choice.choice(PATHS)
        if method == "DELETE" and choice.random() < 0.7:
            method, path = choice.choice(PATHS)
        if choice.random() < 0.25:
            method, path = "GET", "/allocation_candidates"
        version = f"1.{choice.choice((39, 39, 38, 28, choice.randint(0, 39)))}"
        case = Case(method, self._path(path), version, headers=self._headers())
        if method == "GET" and (query := self._query(path)):
            case.query = self._encoded(query)
        if method in {"PUT", "POST"}:
            case.data = self._data(path)
            case.headers.setdefault("content-type", "application/json")
        return case

    def _headers(self) -> dict[str, str]:
        headers = {"x-roles": "reader" if self._choice.random() < 0.03 else "admin,service"}
        if self._is_broken and self._choice.random() < 0.1:
            name = self._choice.choice(("accept", "content-type", "openstack-api-version", "x-openstack-request-id"))
            headers[name] = self._choice.choice(
                ("", "a/b", "text/html", "placement 1.999", "placement", "*;q=x", "a" * 9000)
            )
        return headers

    def _path(self, path: str) -> str:
        for name in ("uuid", "consumer_uuid", "name", "resource_class"):
            if f"<{name}>" in path:
                path = path.replace(f"<{name}>", quote(self._part(name).encode("utf-8", "replace"), safe=""))
        return path

    def _part(self, name: str) -> str:
        if self._is_broken and self._choice.random() < 0.2:
            return self._choice.choice(HARD_TEXT)
        if name in {"uuid", "consumer_uuid"}:
            self._named = self._uuid("provider" if name == "uuid" else "consumer")
            return self._named
        return self._choice.choice(NAMES if name == "name" else CLASSES)

    def _uuid(self, kind: str) -> str:
        known = self._choice.choice(self._uuids[kind])
        if not self._is_broken or self._choice.random() < 0.7:
            return known
        stranger = str(uuid.UUID(int=self._choice.getrandbits(128)))
        return self._choice.choice((stranger, known.upper(), known.replace("-", ""), f"{{{known}}}", known[:-1]))

    # Query strings

    def _query(self, path: str) -> list[tuple[str, str]]:
        if path in {"/allocation_candidates", "/planner/v1/explain"}:
            pairs = self._candidates_query()
        elif path == "/usages":
            pairs = [("project_id", self._choice.choice(("project", "nobody")))]
        elif path.startswith("/resource_providers"):
            pairs = self._some([("name", "host"), ("uuid", self._uuid("provider")), *self._filters("")], most=4)
        else:
            pairs = self._some(
                [("name", "in:HW_CPU_X86_VMX"), ("associated", "true"), ("name", "startswith:HW")], most=2
            )
        return self._broken_query(pairs) if self._is_broken else pairs

    def _some(self, items: list[Any], *, most: int) -> list[Any]:
        return self._choice.sample(items, min(len(items), self._choice.randint(0, most)))

    def _filters(self, suffix: str) -> list[tuple[str, str]]:
        aggregates = [self._uuid("aggregate") for _ in range(self._choice.randint(1, 3))]
        member_of = self._choice.choice((aggregates[0], "in:" + ",".join(aggregates), "!" + aggregates[0]))
        return [
            (f"resources{suffix}", self._resources()),
            (f"required{suffix}", self._traits()),
            (f"member_of{suffix}", member_of),
            (f"in_tree{suffix}", self._uuid("provider")),
        ]

    def _resources(self) -> str:
        classes = self._choice.sample(CLASSES, self._choice.choice((1, 1, 1, 2, 3)))
        return ",".join(f"{name}:{self._choice.choice((1, 1, 2, 4, 9))}" for name in classes)

    def _traits(self) -> str:
        traits = self._choice.sample(TRAITS, self._choice.randint(1, 3))
        if self._choice.random() < 0.3:
            return "in:" + ",".join(traits)
        return ",".join(self._choice.choice(("", "", "!")) + trait for trait in traits)

    def _candidates_query(self) -> list[tuple[str, str]]:
        if self._choice.random() < 0.1:
            return self._many_alike()
        suffixes = self._choice.sample(SUFFIXES, self._choice.choice((1, 1, 2, 3, 5)))
        pairs = []
        for suffix in dict.fromkeys(suffixes):
            resources, *others = self._filters(suffix)
            pairs += [resources, *self._some(others, most=2)] if self._choice.random() < 0.7 else [resources]
        named = [suffix for suffix in suffixes if suffix]
        if len(named) > 1:
            pairs.append(("same_subtree", ",".join(named[:3])))
        return pairs + self._ending()

    def _many_alike(self) -> list[tuple[str, str]]:
        """Ask for many devices one by one: the sort of request that has more combinations than atoms."""
        count = self._choice.choice((4, 8, 9, 12, 60))
        groups = [(f"resources_{index}", self._choice.choice(("PGPU:1", "SRIOV_NET_VF:1"))) for index in range(count)]
        subtree = [("same_subtree", ",".join(f"_{index}" for index in range(count)))]
        return groups + (subtree if self._choice.random() < 0.4 else []) + self._ending()

    def _ending(self) -> list[tuple[str, str]]:
        policy = [("group_policy", self._choice.choice(("none", "isolate")))]
        root = [("root_required", self._choice.choice(TRAITS))]
        limit = [("limit", self._choice.choice(("1", "10", "1000")))] if self._choice.random() < 0.9 else []
        return policy + limit + (root if self._choice.random() < 0.1 else [])

    def _broken_query(self, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        pairs = pairs or [("name", "x")]
        index = self._choice.randrange(len(pairs))
        key, value = pairs[index]
        changes: tuple[Callable[[], list[tuple[str, str]]], ...] = (
            lambda: [(key, self._broken_text(value))],
            lambda: [(key, self._broken_text(value))],
            lambda: [(self._broken_text(key), value)],
            lambda: [(key, value)] * self._choice.choice(REPEATS),
            lambda: [(f"{key}_{number}", value) for number in range(self._choice.choice(REPEATS))],
            list,
        )
        pairs[index : index + 1] = self._choice.choice(changes)()
        return pairs

    def _broken_text(self, text: str) -> str:
        cut = self._choice.randint(0, len(text))
        hard = self._choice.choice(HARD_TEXT)
        separator = self._choice.choice((",", ":", "", ",!"))
        return self._choice.choice(
            (hard, text[:cut], text[:cut] + hard + text[cut:], separator.join([text] * self._choice.choice(REPEATS)))
        )

    def _encoded(self, pairs: list[tuple[str, str]]) -> str:
        """Return the query string. Some is not encoded at all, and some of it is no UTF-8."""
        texts = [
            f"{quote_plus(key.encode('utf-8', 'surrogatepass'))}={quote_plus(value.encode('utf-8', 'surrogatepass'))}"
            for key, value in pairs
        ]
        return "&".join(texts)

    def _times(self) -> int:
        """Return how often something is repeated: often only once, or bodies have gigabytes."""
        times = 2 if self._has_repeated else self._choice.choice(REPEATS)
        self._has_repeated = True
        return times

    # Bodies

    def _data(self, path: str) -> bytes:
        if self._is_broken and self._choice.random() < 0.1:
            return self._choice.choice(
                (
                    b"",
                    b"{",
                    b"\xff",
                    b"[" * 100_000,
                    b'{"a":' * 5000,
                    b"NaN",
                    b"1" * 5000,
                    b'"\\ud800"',
                    b"{} {}",
                    b"null",
                )
            )
        body = self._body(path)
        for _ in range(self._choice.randint(1, 2) if self._is_broken else 0):
            body = self._broken_json(body)
        return json.dumps(body).encode("utf-8", "surrogatepass")

    def _body(self, path: str) -> Any:
        bodies: dict[str, Callable[[], Any]] = {
            "/resource_providers": self._provider,
            "/resource_providers/<uuid>": self._provider,
            "/resource_providers/<uuid>/inventories": self._inventories,
            "/resource_providers/<uuid>/inventories/<resource_class>": self._inventory,
            "/resource_providers/<uuid>/traits": lambda: self._with_generation(traits=self._some(list(TRAITS), most=3)),
            "/resource_providers/<uuid>/aggregates": self._aggregates,
            "/resource_classes": lambda: {"name": self._choice.choice(NAMES)},
            "/resource_classes/<name>": lambda: {"name": self._choice.choice(NAMES)},
            "/allocations": lambda: self._claims(self._choice.randint(1, 3)),
            "/allocations/<consumer_uuid>": lambda: self._claim(self._named),
            "/reshaper": self._reshape,
            "/planner/v1/scores": lambda: {
                "allocation_requests": [{"allocations": claim["allocations"]} for claim in self._claims(3).values()]
            },
        }
        if path.startswith("/planner/") and path not in bodies and self._choice.random() < 0.9:
            return planner_body(self._choice, path, {uuid: self._generation(uuid) for uuid in self._uuids["consumer"]})
        return bodies.get(path, self._choice.choice(list(bodies.values())))()

    def _provider(self) -> dict[str, Any]:
        identity = self._uuid("provider")
        body = {"name": self._choice.choice((identity, "host", "another")), "uuid": identity}
        parent = self._choice.choice((None, self._uuid("provider")))
        return body if self._choice.random() < 0.5 else body | {"parent_provider_uuid": parent}

    def _generation(self, of: str) -> int | None:
        return self._generations.get(of) if self._choice.random() < 0.9 else self._choice.choice((None, 0, 1, 9))

    def _with_generation(self, of: str | None = None, **others: Any) -> dict[str, Any]:
        return {"resource_provider_generation": self._generation(of or self._named), **others}

    def _inventory(self) -> dict[str, Any]:
        fields = {"reserved": 1, "min_unit": 1, "max_unit": 8, "step_size": 1, "allocation_ratio": 2.5}
        name = {"resource_class": self._choice.choice(CLASSES)} if self._choice.random() < 0.5 else {}
        return self._with_generation(
            total=self._choice.choice((1, 8, 8, 100)), **dict(self._some([*fields.items()], most=3)), **name
        )

    def _inventories(self) -> dict[str, Any]:
        if self._choice.random() < 0.3:
            return self._inventory()
        totals = {name: {"total": 8} for name in self._some(list(CLASSES), most=4)}
        return self._with_generation(inventories=totals)

    def _aggregates(self) -> Any:
        listed = [self._uuid("aggregate") for _ in range(self._choice.randint(0, 3))]
        return listed if self._choice.random() < 0.3 else self._with_generation(aggregates=listed)

    def _claims(self, count: int) -> dict[str, Any]:
        return {consumer: self._claim(consumer) for consumer in (self._uuid("consumer") for _ in range(count))}

    def _claim(self, consumer: str) -> dict[str, Any]:
        amounts = {name: self._choice.choice((1, 1, 2, 9)) for name in self._choice.sample(CLASSES, 1)}
        providers = {self._uuid("provider"): {"resources": amounts} for _ in range(self._choice.choice((0, 1, 1, 2)))}
        owner = {"project_id": "project", "user_id": "user"}
        newer = {"consumer_generation": self._generation(consumer), "consumer_type": "INSTANCE"}
        mappings = {"mappings": {"": [*providers]}} if self._choice.random() < 0.2 else {}
        return {"allocations": providers, **owner, **(newer if self._choice.random() < 0.8 else {}), **mappings}

    def _reshape(self) -> dict[str, Any]:
        places = [self._uuid("provider") for _ in range(self._choice.randint(0, 2))]
        inventories = {uuid: self._with_generation(uuid, inventories={"PGPU": {"total": 8}}) for uuid in places}
        return {"inventories": inventories, "allocations": self._claims(self._choice.randint(0, 1))}

    def _broken_json(self, value: Any) -> Any:
        """Replace something in a document by something else."""
        if isinstance(value, dict) and value and self._choice.random() < 0.85:
            key = self._choice.choice(list(value))
            return self._choice.choice(
                (
                    lambda: {**value, key: self._broken_json(value[key])},
                    lambda: {**value, key: self._broken_json(value[key])},
                    lambda: {**value, self._choice.choice(HARD_TEXT): self._choice.choice(HARD_JSON)},
                    lambda: {other: inner for other, inner in value.items() if other != key},
                    lambda: {
                        **value,
                        **{f"{key}{number}": value[key] for number in range(self._times())},
                    },
                )
            )()
        if isinstance(value, list) and value and self._choice.random() < 0.7:
            return [*value[1:], self._broken_json(value[0])] * (1 if self._choice.random() < 1 / 3 else self._times())
        return self._choice.choice(HARD_JSON)
