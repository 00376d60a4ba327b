"""The memory for cached statements stays bounded, whatever is requested."""

from typing import Any

from placement.domain.provider import ProviderFilter
from placement.domain.search_plan import CandidateRequest, RequestGroup
from placement.services.allocation_candidates import SearchOptions, allocation_candidates
from placement.services.providers import providers
from placement.store.connection.database import Database

SHORT = 4000


def _compiled(database: Database) -> list[str]:
    statements: Any = database.engine._compiled_cache
    return [kept.string for kept in statements.values()]


def test_no_long_statement_is_kept_compiled(database: Database) -> None:
    request = CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 1}),))
    assert not allocation_candidates(database, request, SearchOptions()).candidates
    pairs = [frozenset({f"aggregate {number}", f"another {number}"}) for number in range(100)]
    assert not providers(database, ProviderFilter(member_of=pairs)).rows
    assert _compiled(database)
    assert [text for text in _compiled(database) if len(text) > SHORT] == []
