"""Random operations on SQLite and PostgreSQL at once, compared with a small model.

After each step, both give the same answers, usage equals the model's, nothing is newly over its capacity, and
generations only grow.
"""

import uuid
from collections import Counter, defaultdict

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.api.conftest import Api, serving
from tests.examples import examples

CLASSES = ("VCPU", "MEMORY_MB")
PROVIDERS = [str(uuid.UUID(int=1000 + i)) for i in range(3)]
CONSUMERS = [str(uuid.UUID(int=2000 + i)) for i in range(4)]
amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 6), min_size=1)
places = st.dictionaries(st.sampled_from(PROVIDERS), amounts, max_size=2)


def machine(apis: list[Api]) -> type[RuleBasedStateMachine]:
    """Return the state machine that drives these servers."""

    class Placement(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.capacity: dict[tuple[str, str], int] = {}
            self.held: dict[str, dict[tuple[str, str], int]] = {}
            self.generation: dict[str, int] = {}
            self.over: set[tuple[str, str]] = set()

        def ask(self, method: str, path: str, body: object = None) -> tuple[int, object]:
            """Send one request to all servers and return their common answer."""
            answers = []
            for api in apis:
                response = api.request(method, path, **({} if body is None else {"json": body}))
                document = response.get_json(silent=True) or {}
                shown = [error["code"] for error in document["errors"]] if "errors" in document else document
                answers.append((response.status_code, shown))
            assert all(answer == answers[0] for answer in answers)
            assert answers[0][0] < 500
            return answers[0]

        @initialize()
        def empty(self) -> None:
            for consumer in CONSUMERS:
                self.ask("DELETE", f"/allocations/{consumer}")
            for provider in PROVIDERS:
                self.ask("DELETE", f"/resource_providers/{provider}")
                self.ask("POST", "/resource_providers", {"uuid": provider, "name": provider})
                self.generation[provider] = 0

        def used(self) -> Counter[tuple[str, str]]:
            total: Counter[tuple[str, str]] = Counter()
            for held in self.held.values():
                total.update(held)
            return total

        @rule(provider=st.sampled_from(PROVIDERS), totals=st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 12)))
        def set_inventories(self, provider: str, totals: dict[str, int]) -> None:
            body = {
                "resource_provider_generation": self.generation[provider],
                "inventories": {name: {"total": total} for name, total in totals.items()},
            }
            status, _ = self.ask("PUT", f"/resource_providers/{provider}/inventories", body)
            in_use = {name for (place, name), amount in self.used().items() if place == provider and amount}
            assert status == (200 if in_use <= totals.keys() else 409)
            if status == 200:
                self.capacity = {key: total for key, total in self.capacity.items() if key[0] != provider}
                self.capacity |= {(provider, name): total for name, total in totals.items()}
                self.over = {key for key, amount in self.used().items() if amount > self.capacity.get(key, 0)}

        @rule(consumer=st.sampled_from(CONSUMERS), wanted=places)
        def claim(self, consumer: str, wanted: dict[str, dict[str, int]]) -> None:
            self.write({consumer: wanted}, "PUT", f"/allocations/{consumer}")

        @rule(wanted=st.dictionaries(st.sampled_from(CONSUMERS), places, min_size=1, max_size=3))
        def claim_together(self, wanted: dict[str, dict[str, dict[str, int]]]) -> None:
            self.write(wanted, "POST", "/allocations")

        def write(self, wanted: dict[str, dict[str, dict[str, int]]], method: str, path: str) -> None:
            bodies = {}
            for consumer, of_consumer in wanted.items():
                _, before = self.ask("GET", f"/allocations/{consumer}")
                bodies[consumer] = {
                    "allocations": {place: {"resources": taken} for place, taken in of_consumer.items()},
                    "project_id": "project",
                    "user_id": "user",
                    "consumer_type": "INSTANCE",
                    "consumer_generation": before.get("consumer_generation"),
                }
            body = next(iter(bodies.values())) if method == "PUT" else bodies
            status, _ = self.ask(method, path, body)
            assert (status == 204) == self.fits(wanted)
            if status == 204:
                for consumer, of_consumer in wanted.items():
                    self.held[consumer] = flat(of_consumer)
                self.over &= {key for key, amount in self.used().items() if amount > self.capacity.get(key, 0)}

        def fits(self, wanted: dict[str, dict[str, dict[str, int]]]) -> bool:
            """Return whether a write is acceptable: all of it has inventory, and nothing grows over its capacity."""
            before = self.used()
            after = Counter(before)
            asked: defaultdict[tuple[str, str], int] = defaultdict(int)
            for consumer, of_consumer in wanted.items():
                after.subtract(self.held.get(consumer, {}))
                after.update(flat(of_consumer))
                for key, amount in flat(of_consumer).items():
                    asked[key] += amount
            return all(
                key in self.capacity and (after[key] <= self.capacity[key] or after[key] <= before[key])
                for key in asked
            )

        @rule(consumer=st.sampled_from(CONSUMERS))
        def release(self, consumer: str) -> None:
            status, _ = self.ask("DELETE", f"/allocations/{consumer}")
            assert status == (204 if self.held.get(consumer) else 404)
            self.held.pop(consumer, None)
            self.over &= {key for key, amount in self.used().items() if amount > self.capacity.get(key, 0)}

        @invariant()
        def usage_is_exact_and_within_capacity(self) -> None:
            used = self.used()
            for provider, known in list(self.generation.items()):
                _, document = self.ask("GET", f"/resource_providers/{provider}/usages")
                expected = {name: used[provider, name] for place, name in self.capacity if place == provider}
                assert document["usages"] == expected
                assert document["resource_provider_generation"] >= known
                self.generation[provider] = document["resource_provider_generation"]
            exceeded = {key for key, amount in used.items() if amount > self.capacity.get(key, 0)}
            assert exceeded <= self.over

    return Placement


def flat(of_consumer: dict[str, dict[str, int]]) -> dict[tuple[str, str], int]:
    """Return amounts by (provider, class)."""
    return {(place, name): amount for place, taken in of_consumer.items() for name, amount in taken.items()}


@pytest.fixture
def apis(sqlite_url, postgresql_url):
    with serving(sqlite_url) as sqlite, serving(postgresql_url) as postgresql:
        yield [sqlite, postgresql]


def test_random_operations_keep_to_the_model(apis):
    run_state_machine_as_test(
        machine(apis), settings=examples(6, settings(stateful_step_count=25, suppress_health_check=list(HealthCheck)))
    )
