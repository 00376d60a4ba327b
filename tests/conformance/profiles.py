"""The configurations that the suite's files request by the name of a fixture."""

from collections.abc import Iterable
from pathlib import Path

from placement.policies import list_rules
from tests import servers

DEFAULT = "default"
PROFILE_OF_FIXTURE = {
    "CORSFixture": "cors",
    "OpenPolicyFixture": "open-policy",
    "SecureRBACPolicyFixture": "secure-rbac",
    # The legacy rules are the default; only the suite treats them as a separate profile.
    "LegacyRBACPolicyFixture": DEFAULT,
}


def profile_of(fixtures: Iterable[str]) -> str:
    """Return the configuration that a file with these fixtures needs."""
    return next((PROFILE_OF_FIXTURE[name] for name in fixtures if name in PROFILE_OF_FIXTURE), DEFAULT)


def configure(directory: Path, profile: str, sections: servers.Sections) -> None:
    """Write placement.conf, and policy.yaml where the profile has one."""
    policy_file = directory / "policy.yaml"
    if profile == "open-policy":
        rules = [rule.name for rule in list_rules() if rule.name.startswith("placement:")]
        policy_file.write_text("".join(f'"{rule}": "@"\n' for rule in rules), encoding="utf-8")
    policy = {"enforce_new_defaults": str(profile == "secure-rbac"), "policy_file": str(policy_file)}
    more = {"oslo_policy": policy}
    if profile == "cors":
        more["cors"] = {"allowed_origin": "http://valid.example.com", "allow_headers": "openstack-api-version"}
    servers.write_configuration(directory, {**sections, **more})
