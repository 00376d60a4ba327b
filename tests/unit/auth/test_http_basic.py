"""The strategy http_basic against htpasswd files."""

from base64 import b64encode
from pathlib import Path

import bcrypt
import pytest

from placement.auth import strategy_from
from placement.auth.http_basic import PasswordFile
from placement.domain.identity import Identity
from placement.errors import ConfigurationError
from placement.settings import DatabaseSettings, Settings
from tests.unit.auth.wsgi import Served

ROLES = {"alice": ("admin",), "bob": ("reader", "member")}


def line(user: str, password: str, *, variant: bytes = b"2b", rounds: int = 4) -> str:
    hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(rounds))
    return f"{user}:{(b'$' + variant + hashed[3:]).decode()}\n"


def basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "htpasswd"
    path.write_text("# users of the lab\n\n" + line("alice", "wonder:land") + line("bob", "builder", variant=b"2y"))
    return path


def settings_for(file: Path) -> Settings:
    return Settings(
        DatabaseSettings("sqlite://"),
        auth_strategy="http_basic",
        http_basic_file=str(file),
        http_basic_user_roles=ROLES,
    )


@pytest.fixture
def served(file: Path) -> Served:
    return Served(strategy_from(settings_for(file)))


def test_user_and_password_tell_the_caller_whose_project_is_named_alike(served: Served) -> None:
    assert served.call(HTTP_AUTHORIZATION=basic("alice", "wonder:land")) == 200
    assert served.identity == Identity("alice", "alice", ("admin",))


@pytest.mark.parametrize("variant", [b"2a", b"2b", b"2y"])
def test_every_bcrypt_variant_is_understood(file: Path, variant: bytes) -> None:
    file.write_text(line("carol", "käse", variant=variant))
    served = Served(strategy_from(settings_for(file)))
    assert served.call(HTTP_AUTHORIZATION=basic("carol", "käse")) == 200
    assert served.identity == Identity("carol", "carol")


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        "Basic !!!",
        "Basic " + b64encode(b"alice").decode(),
        "Basic " + b64encode(b"\xff\xfe:x").decode(),
        "Bearer " + b64encode(b"alice:wonder:land").decode(),
        basic("alice", "Wonder:land"),
        basic("alice", ""),
        basic("alice", "wonder:land\0"),
        basic("alice", "x" * 5000),
        basic("ALICE", "wonder:land"),
        basic("mallory", "wonder:land"),
        basic("", ""),
        basic("# users of the lab", ""),
    ],
)
def test_anything_else_is_401_with_a_challenge(served: Served, header: str) -> None:
    assert served.call(HTTP_AUTHORIZATION=header) == 401
    assert served.headers["www-authenticate"].startswith("Basic realm=")


def test_no_header_grants_a_role_or_a_project(served: Served) -> None:
    claims = {"HTTP_X_ROLES": "admin", "HTTP_X_PROJECT_ID": "p1", "HTTP_X_AUTH_TOKEN": "admin"}
    assert served.call(HTTP_AUTHORIZATION=basic("bob", "builder"), **claims) == 200
    assert served.identity == Identity("bob", "bob", ("reader", "member"))
    assert served.call(**claims) == 401


def test_a_changed_file_takes_effect_at_once_and_one_that_is_gone_admits_nobody(file: Path, served: Served) -> None:
    old, new = file.read_text(), line("alice", "looking-glass") + line("dave", "dove")
    pairs = [("alice", "wonder:land"), ("bob", "builder"), ("alice", "looking-glass"), ("dave", "dove")]
    admitted = {old: [200, 200, 401, 401], new: [401, 401, 200, 200], None: [401] * 4}
    for content in (old, new, None, old):
        if content is None:
            file.unlink()
        else:
            file.write_text(content)
        assert [served.call(HTTP_AUTHORIZATION=basic(*pair)) for pair in pairs] == admitted[content]


def test_a_file_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="user_file"):
        strategy_from(settings_for(tmp_path / "nowhere"))


def test_hashes_of_other_kinds_admit_nobody_and_are_named(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_text("eve:plain\nfay:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n" + line("bob", "builder"))
    served = Served(strategy_from(settings_for(file)))
    assert served.call(HTTP_AUTHORIZATION=basic("eve", "plain")) == 401
    assert served.call(HTTP_AUTHORIZATION=basic("bob", "builder")) == 200
    assert ["line 1" in text or "line 2" in text for text in caplog.messages] == [True, True]
    assert "plain" not in caplog.text


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The hashes that bcrypt has checked: each costs as much as its rounds say."""
    made: list[bytes] = []
    checkpw = bcrypt.checkpw

    def counted(password: bytes, hashed: bytes) -> bool:
        made.append(hashed[:7])
        return checkpw(password, hashed)

    monkeypatch.setattr(bcrypt, "checkpw", counted)
    return made


def test_a_right_password_costs_bcrypt_once_a_minute(file: Path, checks: list[bytes]) -> None:
    now = [1000.0]
    passwords = PasswordFile(str(file), clock=lambda: now[0])
    for seconds, number in ((0, 1), (30, 1), (31, 2)):
        now[0] += seconds
        assert passwords.accepts("alice", "wonder:land")
        assert len(checks) == number


def test_an_unknown_user_costs_as_much_as_a_wrong_password(file: Path, checks: list[bytes]) -> None:
    file.write_text(line("alice", "secret", rounds=5))
    passwords = PasswordFile(str(file))
    assert not passwords.accepts("alice", "wrong")
    assert not passwords.accepts("nobody", "wrong")
    assert checks == [b"$2b$05$"] * 2


def test_what_is_remembered_does_not_let_another_user_in(file: Path) -> None:
    """The digest separates its parts, so moving a character from one to the other changes it."""
    file.write_text(line("al", "ice-secret"))
    passwords = PasswordFile(str(file))
    assert passwords.accepts("al", "ice-secret")
    assert not passwords.accepts("alice", "-secret")
    assert not passwords.accepts("al", "ice-secret ")
