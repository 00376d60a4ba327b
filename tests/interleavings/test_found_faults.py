"""The harness finds what is wrong: locks of ours that are missing, and a race of the reference that has two winners."""

import copy
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from placement.store import consumers, providers
from placement.store.connection.statements import PreparedStatement
from tests import reference
from tests.interleavings.races import opened_arena, races_of, repeated

REFERENCE_RACE = Path(__file__).with_name("reference_race.py")
MAX_S = 60

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


def test_the_two_winners_of_the_reference_are_found_within_a_minute(empty_postgresql_url: str) -> None:
    """It tries again within one transaction, where it takes what it has inserted itself for earlier usage."""
    try:
        installation = reference.installation()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the reference cannot be installed, and REFERENCE_PYTHON does not name one: {error}")
    variables = {
        **installation.variables,
        "OS_PLACEMENT_DATABASE__CONNECTION": empty_postgresql_url.replace("postgresql://", "postgresql+psycopg2://"),
        "OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP": "True",
        "OS_API__AUTH_STRATEGY": "noauth2",
    }
    command = [str(installation.python), str(REFERENCE_RACE), empty_postgresql_url]
    done = subprocess.run(command, cwd="/", env=variables, capture_output=True, text=True, check=True, timeout=MAX_S)
    assert json.loads(done.stdout.splitlines()[-1]) == [204, 204]
