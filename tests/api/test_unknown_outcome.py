"""If the connection breaks during a commit, the outcome is unknown, and the client is told so."""

import pytest

from tests.api.conftest import serving
from tests.claims import new_uuid, sentence_of
from tests.stalling_proxy import proxied

COMMIT = rb"(?<!AUTO)COMMIT(?!TED)"  # neither a mode nor a level of isolation


@pytest.mark.parametrize("kind", ["postgresql", pytest.param("mariadb", marks=pytest.mark.mariadb)])
@pytest.mark.parametrize("is_heard", [False, True], ids=["before", "after"])
def test_the_client_is_told_to_look_and_the_change_is_not_made_twice(
    request: pytest.FixtureRequest, kind: str, is_heard: bool
) -> None:
    with proxied(request.getfixturevalue(f"{kind}_url")) as (proxy, behind), serving(behind) as api:
        uuid = new_uuid()
        proxy.sever_at(COMMIT, is_heard=is_heard)
        answer = api.post("/resource_providers", {"name": uuid, "uuid": uuid})
        proxy.resume()
        assert "while the change was being committed" in sentence_of(answer, 503)
        assert answer.headers["retry-after"] == "1"
        assert proxy.severed == 1, "it was tried again"
        assert api.get(f"/resource_providers/{uuid}").status_code == (200 if is_heard else 404)
