"""From files and environment variables to Settings."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from oslo_config import cfg

from placement.settings import ConfigurationError, DatabaseSettings, PlacementSettings, Settings, load
from placement.settings.options import list_opts
from placement.settings.values import FairnessSettings

CONNECTION = {"OS_PLACEMENT_DATABASE__CONNECTION": "sqlite:///env.sqlite"}


def write(directory: Path, text: str, name: str = "placement.conf") -> str:
    path = directory / name
    path.write_text(text)
    return str(path)


def test_a_real_file_is_read_whole(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
[DEFAULT]
debug = True
log_dir = /var/log/placement
transport_url = rabbit://unused
[api]
auth_strategy = keystone
[placement_database]
connection = mysql+pymysql://placement:se%cret@db/placement?charset=utf8
max_pool_size = 5
connection_recycle_time = 10
sync_on_startup = true
[placement]
randomize_allocation_candidates = true
max_allocation_candidates = 1000
allocation_candidates_generation_strategy = breadth-first
incomplete_consumer_project_id = p
allocation_conflict_retry_count = 3
[oslo_middleware]
enable_proxy_headers_parsing = true
[keystone_authtoken]
auth_url = http://keystone
""",
    )
    settings = load([path], {}, search=False)
    assert settings.database == DatabaseSettings(
        "mysql+pymysql://placement:se%cret@db/placement?charset=utf8",
        max_pool_size=5,
        connection_recycle_time=10,
        sync_on_startup=True,
    )
    assert settings.placement == PlacementSettings(
        randomize_allocation_candidates=True,
        max_allocation_candidates=1000,
        allocation_candidates_generation_strategy="breadth-first",
        incomplete_consumer_project_id="p",
        allocation_conflict_retry_count=3,
    )
    assert (settings.auth_strategy, settings.proxy_headers_parsing) == ("keystone", True)
    assert (settings.logging.debug, settings.logging.log_dir) == (True, "/var/log/placement")


def test_a_number_that_is_left_empty_has_its_default(tmp_path: Path) -> None:
    numbers = [
        (group, option.name)
        for group, options in list_opts()
        for option in options
        if isinstance(option, cfg.IntOpt | cfg.FloatOpt)
    ]
    lines = "".join(f"[{group}]\n{name} =\n" for group, name in numbers)
    filled = load((), CONNECTION, search=False)
    empty = load([write(tmp_path, lines)], CONNECTION, search=False)
    assert len(numbers) > 10
    assert replace(empty, source=None) == replace(filled, source=None)


def test_later_files_directories_and_variables_win_over_earlier_ones(tmp_path: Path) -> None:
    first = write(tmp_path, "[placement_database]\nconnection = a\nmax_retries = 1\nretry_interval = 1\n", "a.conf")
    second = write(tmp_path, "[placement_database]\nmax_retries = 2\nretry_interval = 2\n", "b.conf")
    (tmp_path / "conf.d").mkdir()
    write(tmp_path / "conf.d", "[placement_database]\nretry_interval = 3\n", "c.conf")
    for variables, connection in (({}, "a"), (CONNECTION, "sqlite:///env.sqlite")):
        settings = load([first, second], variables, config_dirs=[str(tmp_path / "conf.d")], search=False)
        database = settings.database
        assert (database.connection, database.max_retries, database.retry_interval) == (connection, 2, 3)


def test_a_file_that_is_named_replaces_the_directory_of_the_variable(tmp_path: Path) -> None:
    write(tmp_path, "[placement_database]\nconnection = a\nmax_retries = 1\n")
    named = write(tmp_path, "[placement_database]\nconnection = b\n", "named.conf")
    database = load([named], {"OS_PLACEMENT_CONFIG_DIR": str(tmp_path)}, search=False).database
    assert (database.connection, database.max_retries) == ("b", 10)


def test_the_usual_places_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".placement").mkdir()
    write(tmp_path / ".placement", "[placement_database]\nconnection = sqlite:///home.sqlite\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load((), {}).database.connection == "sqlite:///home.sqlite"


def test_where_nothing_is_configured_noauth2_holds_and_no_database_is_named() -> None:
    settings = load((), {"HOME": "/root", "PATH": "/bin"}, search=False)
    assert (settings.auth_strategy, settings.auth_is_implicit, settings.database.connection) == ("noauth2", True, "")


@pytest.mark.parametrize(
    ("text", "variables", "strategy"),
    [
        ("", {}, "keystone"),
        (None, {"OS_PLACEMENT__MAX_ALLOCATION_CANDIDATES": "7"}, "keystone"),
        (None, {"OS_CLOUD": "7"}, "keystone"),
        (None, {"OS_API__AUTH_STRATEGY": "noauth2"}, "noauth2"),
        ("[DEFAULT]\nauth_strategy = noauth2\n", {}, "noauth2"),
    ],
    ids=["any file", "an option", "any variable", "as written", "in its old place"],
)
def test_any_configuration_makes_keystone_the_default(
    tmp_path: Path, text: str | None, variables: dict[str, str], strategy: str
) -> None:
    files = [] if text is None else [write(tmp_path, text)]
    settings = load(files, {**CONNECTION, **variables}, search=False)
    assert (settings.auth_strategy, settings.auth_is_implicit) == (strategy, False)


def test_users_have_the_roles_that_are_written() -> None:
    variables = {**CONNECTION, "OS_HTTP_BASIC__USER_ROLES": "alice:admin, bob: reader + member,carol:"}
    roles = load((), variables, search=False).http_basic_user_roles
    assert roles == {"alice": ("admin",), "bob": ("reader", "member"), "carol": ()}


def test_plain_clients_are_held_to_fair_shares_where_that_is_written(tmp_path: Path) -> None:
    text = "[placement_database]\nconnection = a\n[fair_share]\nenforce = plain\nconsumer_types = INSTANCE, unknown\n"
    fairness = FairnessSettings("plain", ("INSTANCE", "unknown"))
    assert load([write(tmp_path, text)], {}, search=False).fairness == fairness
    assert load((), CONNECTION, search=False).fairness == FairnessSettings()


def test_options_without_effect_are_named_only_where_they_are_set(tmp_path: Path) -> None:
    workarounds = "[workarounds]\noptimize_for_wide_provider_trees = not even a boolean\n"
    path = write(tmp_path, f"[placement_database]\nconnection = a\nconnection_trace = True\n{workarounds}")
    settings = load([path], {"OS_DEFAULT__LOG_COLOR": "1"}, search=False)
    assert settings.ignored_options == (
        "[DEFAULT] log_color",
        "[placement_database] connection_trace",
        "[workarounds] optimize_for_wide_provider_trees",
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[api]\nauth_strategy = ldap\n", "auth_strategy"),
        ("[placement_database]\nconnection = a\nmax_pool_size = many\n", "max_pool_size"),
        ("[placement_database]\nconnection = a\nsync_on_startup = perhaps\n", "sync_on_startup"),
        ("[placement]\nallocation_candidates_generation_strategy = random\n", "generation_strategy"),
        ("[placement_database]\nconnection = a$nowhere\n", "nowhere"),
        ("[http_basic]\nuser_roles = alice\n", "user_roles"),
        (
            "[placement_database]\nconnection = a\n[http_basic]\nuser_roles = alice:admin;bob:reader\n",
            "'admin;bob:reader' of 'alice'",
        ),
        ("[cors]\nmax_age = 1.5\n", "max_age"),
        ("[profiler]\ntrace_sqlalchemy = perhaps\n", "trace_sqlalchemy"),
        ("[fair_share]\nenforce = plain\n", r"\[fair_share\] enforce = plain needs consumer_types"),
        ("no section\n", "placement.conf"),
        ("[placement]\n", r"\[placement_database\] connection is not set"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named) as refused:
        load([write(tmp_path, text)], {}, search=False)
    assert "\n" not in refused.value.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.conf"):
        load([str(tmp_path / "nowhere.conf")], {}, search=False)
    with pytest.raises(ConfigurationError, match=re.escape(f"{tmp_path}/placement.conf")):
        load((), {"OS_PLACEMENT_CONFIG_DIR": str(tmp_path)}, search=False)


def test_a_password_in_the_url_is_not_shown() -> None:
    assert "secret" not in repr(Settings(DatabaseSettings("postgresql://placement:secret@db/placement")))
