"""Policy: the defaults, the operator's files, and their reload."""

import threading
from pathlib import Path
from typing import Any

import pytest

from placement.auth import Policy
from placement.domain.identity import Identity
from placement.errors import ConfigurationError, Forbidden
from placement.policies import list_rules, operations
from placement.settings import Settings, load

LIST = "placement:resource_providers:list"
USAGES = "placement:usages"
OWN_SHARE = "placement:planner:fair_share:show"
RESHAPE = "placement:reshaper:reshape"
JOURNAL = "placement:planner:journal"

ADMIN = Identity("root", "p1", ("admin", "member", "reader"))
SERVICE = Identity("nova", "service", ("service",))
MEMBER = Identity("alice", "p1", ("member", "reader"))
NOBODY = Identity("bob", "p1")


def settings_in(directory: Path, **variables: str) -> Settings:
    """Return the settings of a server with this configuration directory."""
    (directory / "placement.conf").write_text("[placement_database]\nconnection = sqlite://\n")
    return load([str(directory / "placement.conf")], variables, search=False)


def policy_in(directory: Path, *rules: str, **variables: str) -> Policy:
    """Return the policy of a server with this configuration directory and policy file, whose clock stands still."""
    if rules:
        write(directory / "policy.yaml", *rules)
    return Policy(settings_in(directory, **variables), operations(), clock=lambda: 1000.0)


def write(file: Path, *rules: str) -> None:
    """Write a policy file: each rule is a name and a check."""
    pairs = zip(rules[::2], rules[1::2], strict=True)
    file.write_text("".join(f'"{rule}": "{check}"\n' for rule, check in pairs))


def allows(policy: Policy, rule: str, identity: Identity, **target: Any) -> bool:
    try:
        policy.authorize(rule, identity, target)
    except Forbidden:
        return False
    return True


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return policy_in(tmp_path)


GENERAL_RULES = sorted(
    rule.name
    for rule in list_rules()
    if rule.name.startswith("placement:") and rule.name not in {USAGES, OWN_SHARE, JOURNAL, RESHAPE}
)


@pytest.mark.parametrize("rule", GENERAL_RULES)
def test_administrators_and_services_may_do_everything_ordinary(policy: Policy, rule: str) -> None:
    assert [allows(policy, rule, who) for who in (ADMIN, SERVICE, MEMBER, NOBODY)] == [True, True, False, False]


@pytest.mark.parametrize("rule", [USAGES, OWN_SHARE, JOURNAL])
@pytest.mark.parametrize(
    ("identity", "project", "is_allowed"),
    [
        (ADMIN, "other", True),
        (SERVICE, "other", True),
        (MEMBER, "p1", True),
        (MEMBER, "other", False),
        (Identity("alice", "p1", ("member",)), "p1", False),
        (NOBODY, "p1", False),
    ],
)
def test_readers_see_what_is_their_own_project_s(
    policy: Policy, rule: str, identity: Identity, project: str, is_allowed: bool
) -> None:
    assert allows(policy, rule, identity, project_id=project) is is_allowed


@pytest.mark.parametrize(("new_defaults", "is_allowed"), [("True", False), ("False", True)])
def test_an_administrator_reshapes_under_the_old_defaults_only(
    tmp_path: Path, new_defaults: str, is_allowed: bool
) -> None:
    policy = policy_in(tmp_path, OS_OSLO_POLICY__ENFORCE_NEW_DEFAULTS=new_defaults)
    assert allows(policy, RESHAPE, ADMIN) is is_allowed
    assert allows(policy, RESHAPE, SERVICE)
    assert not allows(policy, RESHAPE, MEMBER)


@pytest.mark.parametrize("new_defaults", ["True", "False"])
@pytest.mark.parametrize("scope", [{"system_scope": "all"}, {"domain_id": "d1"}], ids=["system", "domain"])
def test_a_caller_without_a_project_scope_may_do_nothing(
    tmp_path: Path, new_defaults: str, scope: dict[str, str]
) -> None:
    policy = policy_in(tmp_path, LIST, "@", OS_OSLO_POLICY__ENFORCE_NEW_DEFAULTS=new_defaults)
    caller = Identity("root", None, ("admin", "service", "reader"), **scope)
    assert not any(allows(policy, rule, caller) for rule in [*GENERAL_RULES, USAGES, OWN_SHARE, JOURNAL, RESHAPE])


def test_the_refusal_names_the_rule_and_one_that_nobody_declared_is_an_error(policy: Policy) -> None:
    with pytest.raises(Forbidden) as refused:
        policy.authorize(LIST, MEMBER)
    assert refused.value.message == f"Policy does not allow {LIST} to be performed."
    with pytest.raises(Exception, match="placement:unknown"):
        policy.authorize("placement:unknown", ADMIN)


def test_policy_yaml_beside_the_configuration_overrides_single_rules(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, LIST, "role:auditor")
    assert allows(policy, LIST, Identity("eve", "p1", ("Auditor",)))
    assert not allows(policy, LIST, ADMIN)
    assert allows(policy, "placement:resource_providers:show", ADMIN)


def test_policy_file_and_policy_dirs_are_taken_from_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    for name, rule, check in (("ours", LIST, "!"), ("more/10", USAGES, "role:auditor"), ("more/20", LIST, "@")):
        write(tmp_path / f"{name}.yaml", rule, check)
    places = {"OS_OSLO_POLICY__POLICY_FILE": "ours.yaml", "OS_OSLO_POLICY__POLICY_DIRS": str(tmp_path / "more")}
    policy = policy_in(tmp_path, **places)
    assert allows(policy, LIST, NOBODY)
    assert not allows(policy, USAGES, ADMIN)


def test_a_rule_may_ask_for_anything_that_is_known_of_the_caller(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, LIST, "user_id:%(user_id)s and service_roles:service")
    relayed = Identity("alice", "p1", service_roles=("service",))
    assert allows(policy, LIST, relayed)
    assert not allows(policy, LIST, relayed, user_id="bob")
    assert not allows(policy, LIST, MEMBER)


@pytest.mark.parametrize("place", ["policy.yaml", "policy.d/a.yaml"])
def test_a_changed_file_takes_effect_at_the_next_check(tmp_path: Path, place: str) -> None:
    (tmp_path / "policy.d").mkdir()
    file = tmp_path / place
    write(file, LIST, "@")
    policy = policy_in(tmp_path)
    assert allows(policy, LIST, NOBODY)
    write(file, LIST, "!")
    assert not allows(policy, LIST, ADMIN)
    file.unlink()
    assert allows(policy, LIST, SERVICE)


def test_a_new_file_takes_effect_within_a_second(tmp_path: Path) -> None:
    now = [1000.0]
    policy = Policy(settings_in(tmp_path), operations(), clock=lambda: now[0])
    assert not allows(policy, LIST, NOBODY)
    write(tmp_path / "policy.yaml", LIST, "@")
    now[0] += 1.01
    assert allows(policy, LIST, NOBODY)


@pytest.mark.parametrize("text", ["- a list\n", "{: broken", '"x": [1'], ids=["list", "braces", "open"])
def test_a_broken_file_stops_the_start_with_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "policy.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match="policy files"):
        policy_in(tmp_path).prepare()


def test_a_file_that_breaks_later_leaves_the_rules_as_they_were(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, policy = tmp_path / "policy.yaml", policy_in(tmp_path, LIST, "@")
    assert allows(policy, LIST, NOBODY)
    file.write_text("- a list\n")
    assert [allows(policy, LIST, NOBODY) for _ in range(3)] == [True] * 3
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    write(file, LIST, "!")
    assert not allows(policy, LIST, NOBODY)


def test_no_check_sees_half_of_the_rules_while_they_are_read_again(tmp_path: Path) -> None:
    """oslo.policy clears its rules before it reloads them, and refuses any check in between."""
    file, policy = tmp_path / "policy.yaml", policy_in(tmp_path, USAGES, "@")
    policy.prepare()
    start, done = threading.Barrier(4), threading.Event()
    refused: list[str] = []

    def check() -> None:
        start.wait()
        while not done.is_set():
            refused.extend(rule for rule in (LIST, RESHAPE) if not allows(policy, rule, SERVICE))

    threads = [threading.Thread(target=check) for _ in range(3)]
    for thread in threads:
        thread.start()
    start.wait()
    for number in range(30):
        file.write_text(f'"{USAGES}": "@"\n' + "#" * number + "\n")
        policy.prepare()
    done.set()
    for thread in threads:
        thread.join()
    assert refused == []
