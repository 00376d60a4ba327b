"""The harness finds what is wrong: locks that are missing."""

import copy
from collections.abc import Callable
from types import ModuleType

import pytest

from placement.store import consumers, providers
from placement.store.connection.prepared import PreparedStatement
from tests.interleavings.arenas import opened_arena
from tests.interleavings.races import races_of, repeated

TakeOut = Callable[[pytest.MonkeyPatch], object]


def reads_without_lock(patch: pytest.MonkeyPatch, module: ModuleType, *names: str) -> None:
    """Let statements of a module read the rows that they should lock."""
    for name in names:
        keyed = getattr(module, name)
        statement = copy.copy(keyed._statement.statement)
        statement._for_update_arg = None
        patch.setattr(keyed, "_statement", PreparedStatement(statement, by_key=True))


def providers_of_a_claim(patch: pytest.MonkeyPatch) -> None:
    reads_without_lock(patch, providers, "_LOCK_BY_UUIDS", "_LOCK_BY_IDS")


def consumers_of_a_claim(patch: pytest.MonkeyPatch) -> None:
    reads_without_lock(patch, consumers, "_LOCK")


def roots_of_trees(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(providers, "lock_providers", lambda _tx, _ids: {})


@pytest.mark.parametrize(
    ("lock", "names"),
    [
        (providers_of_a_claim, ("claim", "claim_of_two_hosts")),
        (consumers_of_a_claim, ("resize", "migrate")),
        (roots_of_trees, ("create_child", "move_provider")),
    ],
)
def test_a_missing_lock_is_found_and_the_race_repeats(
    lock: TakeOut, names: tuple[str, str], postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(monkeypatch)
    with opened_arena(postgresql_url) as arena:
        fault = next(filter(None, races_of(arena, names)))
        again = repeated(arena, names, fault.outcome.order)
    assert again is not None
    assert again.outcome.effect == fault.outcome.effect
