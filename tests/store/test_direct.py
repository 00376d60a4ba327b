"""The fast path to PostgreSQL gives the same results as SQLAlchemy, and is not used where it cannot work."""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from sqlalchemy import select, text

from placement.allocators.fragmentation.hosts import FragmentationSettings
from placement.allocators.ranking_profile import RankingProfile
from placement.app import create_app
from placement.openapi.story import STORY, PlayedStep, Step, played_on
from placement.settings import AccessLogSettings, DatabaseSettings, Settings
from placement.settings.planner import PlannerSettings
from placement.settings.planner.values import FairShareSettings
from placement.store.connection import direct
from placement.store.connection.engines import engine_for
from placement.store.connection.statements import PreparedStatement, is_direct
from placement.store.lifecycle.opening import normalised
from placement.store.tables import metadata, placement_journal
from tests.claims import OWNER, entry
from tests.databases import Pool

if TYPE_CHECKING:
    from placement.store.connection.database import Database

STORE = Path(direct.__file__).parents[1]
CONNECTION = Path(direct.__file__).parent
COMPOSED = {"search/serving.py"}
"""It builds parts of statements that others send."""

ONE, OTHER, THIRD = str(UUID(int=1)), str(UUID(int=2)), str(UUID(int=5))


def stocked(**inventories: dict[str, int]) -> dict[str, Any]:
    return {"resource_provider_generation": 0, "inventories": inventories}


def planned(number: int, amount: int, **more: Any) -> dict[str, Any]:
    consumer = {"uuid": str(UUID(int=number)), "consumer_type": "INSTANCE", **OWNER}
    return {"groups": {"_A": {"resources": {"CUSTOM_ONE": amount}}}, "consumer": consumer, **more}


PLANNED, GANG = planned(3, 1), planned(4, 2, members=2, together={"level": "rack"})
RULED = {"_A": {"resources": {"CUSTOM_ONE": 1}, "count": "all"}}
LOCKED_IN_PARTS = stocked(CUSTOM_ONE={"total": 2}, CUSTOM_PCIE_LOCK={"total": 4, "min_unit": 2})
ABLE = {"resource_provider_generation": 1, "traits": ["HW_CPU_X86_AVX"]}
MANY_AMOUNTS = "&".join([f"resources_{amount}=CUSTOM_ONE:{amount}" for amount in range(1, 6)])
WITH_A_TRAIT = "resources=CUSTOM_ONE:1,CUSTOM_PCIE_LOCK:2&required=HW_CPU_X86_AVX&limit=1"

STEPS = [
    *STORY,
    *[
        Step(f"{number}: {method} {path}", method, path, *body)
        for number, (method, path, *body) in enumerate(
            [
                ("POST", "/resource_providers", {"name": "one", "uuid": ONE}),
                ("POST", "/resource_classes", {"name": "CUSTOM_ONE"}),
                ("PUT", f"/resource_providers/{ONE}/inventories", stocked(CUSTOM_ONE={"total": 2})),
                ("POST", "/planner/v1/candidates", {"groups": PLANNED["groups"], "profile": "packing"}),
                ("GET", "/allocation_candidates?resources=VCPU:1&limit=1"),
                ("POST", "/planner/v1/claims", PLANNED),
                ("POST", "/planner/v1/claims", PLANNED),
                ("POST", "/planner/v1/claims", GANG),
                ("GET", "/allocation_candidates?resources=VCPU:1&limit=1"),
                ("POST", "/resource_providers", {"name": "other", "uuid": OTHER}),
                ("POST", "/resource_classes", {"name": "CUSTOM_PCIE_LOCK"}),
                ("PUT", f"/resource_providers/{OTHER}/inventories", stocked(CUSTOM_PCIE_LOCK={"total": 1})),
                ("PUT", f"/allocations/{OTHER}", entry({OTHER: {"CUSTOM_PCIE_LOCK": 1}})),
                ("GET", "/allocation_candidates?resources=CUSTOM_ONE:1"),
                ("PUT", f"/allocations/{ONE}", entry({ONE: {"CUSTOM_ONE": 1}})),
                ("PUT", f"/resource_providers/{OTHER}", {"name": "other", "parent_provider_uuid": ONE}),
                ("POST", "/resource_providers", {"name": "third", "uuid": THIRD}),
                ("PUT", f"/resource_providers/{THIRD}/inventories", LOCKED_IN_PARTS),
                ("PUT", f"/resource_providers/{THIRD}/traits", ABLE),
                ("GET", f"/allocation_candidates?{WITH_A_TRAIT}"),
                ("GET", f"/allocation_candidates?{MANY_AMOUNTS}&group_policy=none"),
                ("POST", "/planner/v1/headroom", {"requests": {"_A": {"groups": RULED}}}),
                ("POST", "/planner/v1/candidates", {"groups": PLANNED["groups"]}),
            ]
        )
    ],
]
"""The requests that send every statement: with locks, lock amounts in parts, repetitions, and after changes."""

PLANNER = PlannerSettings(
    profiles={
        "default": RankingProfile(),
        "packing": RankingProfile("packing", fragmentation=FragmentationSettings(devices="CUSTOM_ONE")),
    },
    aggregates={"rack": {"b1": (ONE,)}},
    fair_share=FairShareSettings(keep_s=0),  # Results are reused for a while, which may end in one run only.
)

MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?")
OF_THE_RUN = {"created_at", "updated_at", "time", "commit_mark", "request_id"}
"""Columns that depend on the time or on the request."""


@pytest.fixture
def another_postgresql_url(postgresql_databases: Pool) -> Iterator[str]:
    url, give_back = postgresql_databases.borrow()
    yield url
    give_back()


def test_each_statement_gives_the_same_rows_either_way(postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every request of the API, on the fast path and without it."""
    sent, wrong = compare_queries(monkeypatch)
    answers, _rows = played(postgresql_url, plain=False)
    assert {status for _title, status, _body in answers} & {500, 503} == set()
    assert wrong == []
    assert sorted(files_with_statements() - sent - COMPOSED) == []


def test_requests_leave_the_same_answers_and_tables_either_way(
    postgresql_url: str, another_postgresql_url: str
) -> None:
    assert played(postgresql_url, plain=False) == played(another_postgresql_url, plain=True)


def compare_queries(monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], list[str]]:
    """Send each query that takes the fast path through SQLAlchemy as well.

    Returns the files that sent statements, and the statements whose rows differed.
    """
    files: set[str] = set()
    wrong: list[str] = []

    def both(fast: Any) -> Any:
        def run(self: PreparedStatement, connection: Any, *values: Any) -> Any:
            found = fast(self, connection, *values)
            if is_direct(connection):
                files.add(asking_file())
                # Statements that change rows cannot be sent twice; the tables show their effect.
                if self.statement.is_select and not same(found, connection.execute(self.statement, *values)):
                    wrong.append(str(self.statement))
            return found

        return run

    for name in ("tuples", "rows", "change"):
        monkeypatch.setattr(PreparedStatement, name, both(getattr(PreparedStatement, name)))
    return files, wrong


def same(some: Iterable[Any], others: Iterable[Any]) -> bool:
    return Counter(map(values_of, some)) == Counter(map(values_of, others))


def values_of(row: Any) -> tuple[Any, ...]:
    """Return a row's values; the empty result of a void function comes as bytes or as text, and lists in any order."""
    return tuple("" if value == b"" else tuple(sorted(value)) if isinstance(value, list) else value for value in row)


def asking_file() -> str:
    """Return the store's file that sends the current statement."""
    frame: Any = sys._getframe(2)
    while CONNECTION in Path(frame.f_code.co_filename).parents:
        frame = frame.f_back
    return str(Path(frame.f_code.co_filename).relative_to(STORE))


def files_with_statements() -> set[str]:
    """Return the store's files that create statements."""
    found = {path for path in STORE.rglob("*.py") if CONNECTION not in path.parents and makes_statements(path)}
    return {str(path.relative_to(STORE)) for path in found}


def makes_statements(path: Path) -> bool:
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return any(isinstance(called, ast.Name) and called.id in {"PreparedStatement", "row_insert"} for called in calls)


def played(url: str, *, plain: bool) -> tuple[list[Any], dict[str, Any]]:
    """Send every request of the API reference; return the answers and the final contents of the tables.

    The journal is excluded: triggers write it, and its ids continue from another test of this database.
    """
    settings = Settings(
        database=DatabaseSettings(connection=url, plain_sqlalchemy=plain),
        auth_strategy="noauth2",
        auth_is_implicit=True,
        access_log=AccessLogSettings(enabled=False),
        planner=PLANNER,
    )
    app = create_app(settings)
    database: Database = app.extensions["placement"].database
    try:
        with database.reader.connect() as connection:
            assert is_direct(connection) is not plain
        answers = [timeless(example) for example in played_on(app, STEPS) if "/journal" not in example.step.path]
        with database.reader.connect() as connection:
            return answers, {
                table.name: rows_of(connection, table)
                for table in metadata.sorted_tables
                if table is not placement_journal
            }
    finally:
        database.dispose()


def timeless(example: PlayedStep) -> tuple[str, int, str]:
    return example.step.title, example.status, MOMENT.sub("then", repr(in_one_order(example.body)))


def in_one_order(body: Any) -> Any:
    """Sort the lists and the fields of a body: most are in the order of rows on disk, which VACUUM changes."""
    if isinstance(body, dict):
        return {key: in_one_order(body[key]) for key in sorted(body)}
    if isinstance(body, list):
        return sorted(map(in_one_order, body), key=repr)
    return body


def rows_of(connection: Any, table: Any) -> Any:
    columns = [column for column in table.columns if column.name not in OF_THE_RUN]
    return sorted(MOMENT.sub("then", repr(row)) for row in connection.execute(select(*columns)))


def test_it_steps_aside_where_looking_fails(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """SQLAlchemy may have renamed what the check looks for."""
    monkeypatch.delattr(direct, "text_of")
    engine = opened_anew(postgresql_url)
    with engine.connect() as connection:
        assert not is_direct(connection)
        assert connection.execute(text("SELECT 1")).scalar() == 1
    engine.dispose()
    assert "text_of" in caplog.text


@pytest.fixture(autouse=True)
def looked_anew() -> Iterator[None]:
    """Clear what other tests have cached."""
    direct.unmet.cache_clear()
    yield
    direct.unmet.cache_clear()


def opened_anew(url: str) -> Any:
    return engine_for(normalised(url))
