"""The configurations that the suite's files request by the name of a fixture."""

from collections.abc import Iterable
from pathlib import Path

from tests import servers

DEFAULT = "default"
PROFILE_OF_FIXTURE = {
    "CORSFixture": "cors",
    "OpenPolicyFixture": "open-policy",
    "SecureRBACPolicyFixture": "secure-rbac",
    # The legacy rules are the default; only the suite treats them as a separate profile.
    "LegacyRBACPolicyFixture": DEFAULT,
}

ACTIONS = {
    "resource_providers": "list create show update delete",
    "resource_classes": "list create show update delete",
    "resource_providers:inventories": "list create show update delete",
    "resource_providers:aggregates": "list update",
    "resource_providers:traits": "list update delete",
    "resource_providers:allocations": "list",
    "traits": "list show update delete",
    "allocations": "manage list update delete",
    "allocation_candidates": "list",
    "reshaper": "reshape",
}
RULES = [f"placement:{rule}:{action}" for rule, actions in ACTIONS.items() for action in actions.split()]
RULES += ["placement:resource_providers:usages", "placement:usages"]


def profile_of(fixtures: Iterable[str]) -> str:
    """Return the configuration that a file with these fixtures needs."""
    return next((PROFILE_OF_FIXTURE[name] for name in fixtures if name in PROFILE_OF_FIXTURE), DEFAULT)


def configure(directory: Path, profile: str, sections: servers.Sections) -> None:
    """Write placement.conf, and policy.yaml where the profile has one."""
    policy_file = directory / "policy.yaml"
    if profile == "open-policy":
        policy_file.write_text("".join(f'"{rule}": "@"\n' for rule in RULES), encoding="utf-8")
    policy = {"enforce_new_defaults": str(profile == "secure-rbac"), "policy_file": str(policy_file)}
    more = {"oslo_policy": policy}
    if profile == "cors":
        more["cors"] = {"allowed_origin": "http://valid.example.com", "allow_headers": "openstack-api-version"}
    servers.write_configuration(directory, {**sections, **more})
