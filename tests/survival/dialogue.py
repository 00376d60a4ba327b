"""Random requests about one cloud: the planner's questions and claims, GET /allocation_candidates, and writes."""

import dataclasses
import re
from collections import deque
from collections.abc import Callable
from typing import Any

from placement.domain.planner_request import PlannerRequest
from tests.bench import hard_requests
from tests.differential.generate import filters
from tests.differential.generate.candidates import candidates
from tests.differential.generate.reads import provider_list
from tests.differential.generate.world import CONSUMER_TYPES, PROJECTS, USERS, World
from tests.differential.generate.writes import aggregates, release, write
from tests.differential.requests import NO_BODY, Request
from tests.http_calls import Answer
from tests.planner_clouds import body_of, random_request

PLANNER = "/planner/v1"
PROFILES = ("spread", "ai", "strict", "shares")
LEVELS = ("numa", "pcie", "CUSTOM_SOCKET")
FABRIC = ("host", "rack")
MAX_GROUPS = 5
"""Of the requests that are meant to be hard: with more they are about the step budget."""
REMEMBERED = 12
UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Body = dict[str, Any]


def changes_something(request: Request) -> bool:
    """Tell whether a request may change anything; most POSTs to the planner are questions."""
    return request.is_write and (not request.path.startswith(PLANNER) or request.path == f"{PLANNER}/claims")


class Dialogue:
    """Draws one request after the other, some from what earlier answers contained."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._questions: list[Request] = []
        self._proposals: list[Body] = []
        """Allocation requests of the latest answers."""
        self._named: list[str] = []
        """The providers that the latest answer is about."""
        self._episode: deque[Callable[[], Request]] = deque()

    def next(self) -> Request:
        """Return a request: the next of an episode, a new question, an earlier one again, or a write."""
        world = self.world
        if self._episode:
            return self._episode.popleft()()
        if world.chance(25):
            self._begin_episode()
            return self._episode.popleft()()
        if self._questions and world.chance(15):
            return world.one(self._questions)
        return self._write() if world.chance(20) else self._question()

    def _question(self) -> Request:
        ways, weights = zip(*WAYS, strict=True)
        return self.world.random.choices(ways, weights)[0](self)

    def _begin_episode(self) -> None:
        """Plan to ask the same twice, and once more after each of a few writes to what the answer is about."""
        question = self._question()

        def ask() -> Request:
            return question

        self._episode = deque([ask, ask])
        for _ in range(self.world.random.randint(1, 3)):
            self._episode += [self._aimed_write, ask]

    def learn(self, request: Request, answer: Answer) -> None:
        """Take note of what can be asked again, of what can be allocated, and of what an answer is about."""
        if not changes_something(request):
            self._questions = [*self._questions, request][-REMEMBERED:]
            named = set(UUID.findall(answer.body.decode(errors="replace")))
            self._named = [uuid for uuid in self.world.providers if uuid in named] or self.world.providers
        document = answer.document if answer.status == 200 else None
        if isinstance(document, dict):
            proposals = document.get("allocation_requests", ())
            self._proposals = [*self._proposals, *[each for each in proposals[:6] if "mappings" in each]][-30:]

    # Writes

    def _write(self) -> Request:
        """Allocate what an answer has proposed, or write anything else."""
        if not self._proposals or self.world.chance(60):
            return write(self.world)
        return self._put_allocation(self.world.one(self._proposals))

    def _aimed_write(self) -> Request:
        """Change a provider that the latest answer is about."""
        world = self.world
        if not self._named or (self._proposals and world.chance(20)):
            return self._write()
        ways, weights = zip(*AIMED, strict=True)
        return world.random.choices(ways, weights)[0](self, world.one(self._named))

    def _put_allocation(self, body: Body) -> Request:
        world = self.world
        owner = {"project_id": world.one(PROJECTS), "user_id": world.one(USERS), "consumer_generation": None}
        body = {**body, **owner, "consumer_type": world.one(CONSUMER_TYPES)}
        return world.request("PUT", f"/allocations/{self._new_consumer()}", 39, body)

    def _put_inventory(self, node: str) -> Request:
        world = self.world
        name = world.one(world.inventories.get(node) or world.classes)
        total = world.one((1, 2, 4, 8, 64, 300_000))
        body = {"resource_provider_generation": world.provider_generation(node), "total": total}
        body |= world.one(({}, {}, {"reserved": total}, {"max_unit": 1}, {"allocation_ratio": 2.0}))
        return world.request("PUT", f"/resource_providers/{node}/inventories/{name}", 39, body)

    def _put_traits(self, node: str) -> Request:
        world = self.world
        kept = {name for name in world.traits_of.get(node, ()) if world.chance(50)}
        world.traits_of[node] = sorted({*kept, *world.random.sample(world.traits, min(2, len(world.traits)))})
        generation = world.provider_generation(node)
        body = {"resource_provider_generation": generation, "traits": world.traits_of[node]}
        return world.request("PUT", f"/resource_providers/{node}/traits", 39, body)

    def _take(self, node: str) -> Request:
        name = self.world.one(self.world.inventories.get(node) or self.world.classes)
        return self._put_allocation({"allocations": {node: {"resources": {name: 1}}}})

    def _move(self, node: str) -> Request:
        body = {"name": f"moved-{node}", "parent_provider_uuid": self.world.one([None, *self.world.providers])}
        return self.world.request("PUT", f"/resource_providers/{node}", 39, body)

    def _new_consumer(self) -> str:
        self.world.consumers.append(self.world.new_uuid())
        return self.world.consumers[-1]

    # Bodies

    def _document(self) -> Body:
        """Return a request in the planner's terms, without what only some routes accept."""
        world = self.world
        ways: list[Callable[[], Body]] = [self._groups, self._devices]
        if "PGPU" in world.classes:
            ways += [self._random, self._random, self._hard, self._easy, self._easy, self._easy]
        body = world.one(ways)()
        if world.chance(25):
            body["profile"] = world.one((*PROFILES, self._inline_profile()))
        if world.chance(6):
            body["avoid"] = {"trees": world.some(world.providers, 2)} if world.providers else {}
        return body

    def _inline_profile(self) -> Body:
        world = self.world
        preferences = {
            name: {"type": world.one(("MostAllocated", "LeastAllocated")), "weight": world.one((1, 2, 5))}
            for name in world.some(world.classes, 3)
        }
        return {"fit": {"weight": 3, "resources": preferences}, "compactness": {"weight": world.one((0, 1, 3))}}

    def _random(self) -> Body:
        body = body_of(dataclasses.replace(random_request(self.world.random), limit=PlannerRequest().limit))
        # The release refuses alternatives for the root.
        body["root_required"] = [traits for traits in body.get("root_required", []) if not traits.startswith("in:")]
        del body["limit"]
        return body

    def _hard(self) -> Body:
        while True:
            body = hard_requests.plan(self.world.random)
            if len(body.get("groups", ())) + len(body.get("paths", ())) <= MAX_GROUPS:
                return {name: value for name, value in body.items() if name not in ("limit", "per_tree", "explain")}

    def _easy(self) -> Body:
        """Return one or two kinds of devices, which most clouds with devices have."""
        world = self.world
        groups: Body = {"_G": {"resources": {"PGPU": 1}, "count": world.one((1, 1, 2))}}
        body: Body = {"groups": groups}
        if world.chance(50):
            groups["_N"] = {"resources": {"SRIOV_NET_VF": 1}, "count": world.one((1, 1, "per-subtree"))}
            mode = "preferred" if groups["_N"]["count"] == 1 else world.one(("required", "preferred"))
            body["affinity"] = [{"groups": ["_G", "_N"], "primary": "_G", "level": world.one(LEVELS[:2]), "mode": mode}]
        if world.chance(30):
            groups[""] = {"resources": {world.one(("VCPU", "MEMORY_MB")): 1}}
        if world.chance(20):
            body["within"] = [{"groups": ["_G"], "level": world.one(LEVELS), "mode": "preferred"}]
        if world.chance(20):
            body["exclusive"] = [{"groups": [world.one([*groups][:1])], "level": world.one(("pcie", "device"))}]
        return body

    def _groups(self) -> Body:
        """Return groups for what one tree of the cloud has."""
        world, groups = self.world, {}
        nodes = world.tree()
        for suffix in ("", "_A", "_B")[: world.random.randint(1, 3)]:
            own = world.some(nodes, 1) if nodes and suffix else nodes
            names = {world.resource_class(own) for _ in range(1 if suffix else 2)}
            group: Body = {"resources": {name: world.amount() for name in sorted(names)}}
            if world.chance(20):
                group["required"] = filters.required(world, 39, own).split(",")
            if world.chance(15):
                group["member_of"] = [filters.member_of(world, 39, own)]
            if suffix and world.chance(25):
                group["count"] = world.one((2, 2, 3, "all"))
            groups[suffix] = group
        return {"groups": groups, "group_policy": world.one(("none", "isolate"))}

    def _devices(self) -> Body:
        """Return names as Koordinator writes them."""
        world = self.world
        names = world.some(("nvidia.com/gpu", "koordinator.sh/rdma"), 2)
        body: Body = {"requests": {name: world.one((1, 1, 2)) for name in names}}
        if len(names) > 1 and world.chance(50):
            scope = {"requiredScope": "SamePCIe"} if world.chance(50) else {}
            body["device_joint_allocate"] = {"deviceTypes": ["gpu", "rdma"], **scope}
        if world.chance(30):
            hint = {"allocateStrategy": world.one(("ApplyForAll", "RequestsAsCount"))}
            body["device_allocate_hint"] = {world.one(("gpu", "rdma")): hint}
        return body

    def _changes(self) -> Body:
        """Return a hypothetical cloud, rarely the real one."""
        world = self.world
        body: Body = {}
        if world.chance(40):
            body["released"] = world.some(world.consumers, 3)
        if world.chance(30) and world.providers:
            body["without"] = world.some([*world.providers, *world.aggregates], 2)
        if world.chance(30) and world.providers:
            body["with"] = [{"like": world.provider(), "count": world.random.randint(1, 3)}]
        return body

    def _asked(self) -> Request:
        """Return a query for candidates, half of them plain ones that something can serve."""
        world = self.world
        nodes = world.tree()
        if not nodes or world.chance(50):
            return candidates(world)
        own = [name for node in nodes for name in world.inventories.get(node, ())] or world.classes
        amounts = {name: world.one((1, 1, 1, 2)) for name in world.some(own, 2)}
        pairs = [("resources", ",".join(f"{name}:{amount}" for name, amount in amounts.items()))]
        for suffix in world.some(("_A", "_B"), 2) if world.chance(50) else ():
            pairs.append((f"resources{suffix}", f"{world.one(own)}:1"))
            if world.chance(25):
                pairs.append((f"required{suffix}", filters.required(world, 39, nodes)))
        if world.chance(20):
            pairs.append(("required", filters.required(world, 39, nodes)))
        pairs.append(("group_policy", world.one(("none", "isolate"))))
        return Request("GET", "/allocation_candidates", "1.39", tuple(pairs))

    def _query(self) -> tuple[tuple[str, str], ...]:
        return self._asked().query

    # Routes

    def candidates(self) -> Request:
        """GET /allocation_candidates, often with a limit."""
        request = self._asked()
        if request.minor >= 16 and not request.values("limit") and self.world.chance(45):
            limit = self.world.one(("1", "2", "5", "10", "1000"))
            request = dataclasses.replace(request, query=(*request.query, ("limit", limit)))
        return request

    def explain(self) -> Request:
        return dataclasses.replace(self._asked(), path=f"{PLANNER}/explain")

    def plan(self) -> Request:
        world = self.world
        body = self._document()
        body["limit"] = world.one((1, 2, 10, 1000))
        body["per_tree"] = world.one((1, 1, 1, 2, 5))
        if world.chance(20):
            body["explain"] = True
        if world.chance(25):
            body |= self._changes()
        return self._post("candidates", body)

    def claim(self) -> Request:
        """Claim for one consumer or for a gang, really or as a dry run."""
        world = self.world
        body = self._document()
        body["consumer"] = self._holder()
        if world.chance(45):
            body["members"] = world.one((2, 2, 3, 4))
            if world.chance(25):
                listed = [{"consumer": self._holder()} for _ in range(2)]
                body["members"] = [*listed, {"consumer": self._holder(), "request": self._document()}]
                del body["consumer"]
            self._add_rules_of_gang(body)
        if world.chance(10):
            body["replaces"] = True
        if world.chance(15):
            body["dry_run"] = True
        return self._post("claims", body)

    def _holder(self) -> Body:
        world = self.world
        consumer = world.one(world.consumers) if world.chance(15) else self._new_consumer()
        owner = {"project_id": world.one(PROJECTS), "user_id": world.one(USERS)}
        return {"uuid": consumer, **owner, "consumer_type": world.one(CONSUMER_TYPES)}

    def _add_rules_of_gang(self, body: Body) -> None:
        world = self.world
        if world.chance(35):
            body["all_or_nothing"] = False
            body["stream"] = world.chance(40)
            return
        if world.chance(40):
            body["together"] = {"level": world.one(FABRIC), "mode": world.one(("required", "preferred"))}
            if world.chance(25):
                body["together"] = {"level": world.one(FABRIC), "each": 2}
        if world.chance(30):
            body["apart"] = {"level": world.one(FABRIC)}

    def scores(self) -> Request:
        world = self.world
        chosen = world.some(self._proposals, 5) if self._proposals else []
        asked = [{name: each[name] for name in ("allocations", "mappings")} for each in chosen]
        body: Body = {"allocation_requests": asked}
        if world.chance(60):
            body["profile"] = world.one(PROFILES)
        return self._post("scores", body)

    def headroom(self) -> Request:
        world = self.world
        if world.chance(35):
            return world.request("GET", f"{PLANNER}/headroom", 39, query=self._query())
        body: Body = {}
        if world.chance(92):
            body["requests"] = {f"r{number}": self._counted() for number in range(world.random.randint(1, 3))}
            if world.chance(35):
                body["mix"] = {name: world.one((1, 2, 0.5)) for name in body["requests"]}
        if world.chance(60):
            body["per"] = world.one(("total", "tree", "aggregate", "share"))
        if world.chance(50):
            body |= {name: value for name, value in self._changes().items() if name != "with"}
        return self._post("headroom", body)

    def _counted(self) -> Body | str:
        if self.world.chance(55):
            return self._document()
        return Request("GET", "", query=self._query()).target().removeprefix("?")

    def _post(self, route: str, body: Any = NO_BODY) -> Request:
        return self.world.request("POST", f"{PLANNER}/{route}", 39, body)


AIMED: tuple[tuple[Callable[[Dialogue, str], Request], int], ...] = (
    (Dialogue._put_inventory, 35),
    (Dialogue._put_traits, 20),
    (lambda dialogue, node: aggregates(dialogue.world, node), 12),
    (Dialogue._take, 12),
    (lambda dialogue, _node: release(dialogue.world), 12),
    (lambda dialogue, node: dialogue.world.request("DELETE", f"/resource_providers/{node}", 39), 4),
    (Dialogue._move, 5),
)
"""Writes to a provider, with weights."""

WAYS: tuple[tuple[Callable[[Dialogue], Request], int], ...] = (
    (Dialogue.candidates, 24),
    (Dialogue.plan, 22),
    (Dialogue.claim, 16),
    (Dialogue.explain, 9),
    (Dialogue.headroom, 10),
    (Dialogue.scores, 5),
    (lambda dialogue: dataclasses.replace(provider_list(dialogue.world), path=f"{PLANNER}/inventory"), 4),
)
"""Questions and claims, with weights."""
