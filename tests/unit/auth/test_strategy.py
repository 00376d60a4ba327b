"""The choice of a strategy from the settings, in separate processes where imports matter."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from placement.auth import strategy_from
from placement.errors import ConfigurationError
from placement.settings import DatabaseSettings, Settings


def settings(strategy: str, *, is_implicit: bool = False) -> Settings:
    return Settings(DatabaseSettings("sqlite://"), auth_strategy=strategy, auth_is_implicit=is_implicit)


def output_of(program: str, tmp_path: Path, **variables: str) -> str:
    """Run a program in a new process that searches ``tmp_path`` for modules first."""
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_noauth2_that_is_written_down_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    strategy_from(settings("noauth2"))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_noauth2_that_nobody_chose_is_not_warned_of_and_keeps_strangers_out(caplog: pytest.LogCaptureFixture) -> None:
    strategy = strategy_from(settings("noauth2", is_implicit=True))
    assert caplog.records == []
    assert strategy.identify({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_AUTH_TOKEN": "admin"})


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ldap"):
        strategy_from(settings("ldap"))


START = """
from placement.api.middleware import wrap_with_cors
from placement.auth import strategy_from
from placement.errors import ConfigurationError
from placement.settings import load
settings = load(search=False)
try:
    strategy_from(settings)
    wrap_with_cors(None, settings)
except ConfigurationError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("extra", "module", "variables"),
    [
        ("keystone", "keystonemiddleware", {"OS_API__AUTH_STRATEGY": "keystone"}),
        ("cors", "oslo_middleware", {"OS_API__AUTH_STRATEGY": "noauth2", "OS_CORS__ALLOWED_ORIGIN": "http://a"}),
    ],
)
def test_a_missing_extra_stops_the_start_with_one_sentence(
    tmp_path: Path, extra: str, module: str, variables: dict[str, str]
) -> None:
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError('No module', name='{module}')")
    said = output_of(START, tmp_path, OS_PLACEMENT_DATABASE__CONNECTION="sqlite://", **variables)
    assert f"pip install 'placement-server[{extra}]'" in said
    assert "\n" not in said
