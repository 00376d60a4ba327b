"""The policy rules: openstack-placement's names, defaults and scopes, so that its policy.yaml works unchanged.

The rules of the planner (``placement:planner:*``) and of the metrics are this server's own. Routes say what they guard.

Importing this module imports oslo.policy, which is large, so ``policy.py`` does it on first use.
"""

from collections.abc import Iterator

from oslo_policy import policy

PROJECT_SCOPE = ["project"]

ADMIN_OR_SERVICE = "rule:admin_or_service_api"
ADMIN_OR_READER_OR_SERVICE = "rule:admin_or_project_reader_or_service_api"
SERVICE = "rule:service_api"

Operations = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""Each rule, with the method and path of the requests that it guards."""

CHECKS = {
    "placement:usages": ADMIN_OR_READER_OR_SERVICE,
    "placement:reshaper:reshape": SERVICE,
    # Readers of a project see entries about its consumers.
    "placement:planner:journal": ADMIN_OR_READER_OR_SERVICE,
    # The path to the caller's own project; the whole tree requires show_all.
    "placement:planner:fair_share:show": ADMIN_OR_READER_OR_SERVICE,
}
"""Exceptions to the default, ADMIN_OR_SERVICE."""


def rules_for(operations: Operations) -> list[policy.RuleDefault]:
    """Return all rules with their defaults."""
    return [*_roles(), *_operations(operations)]


def _roles() -> Iterator[policy.RuleDefault]:
    """Yield the rules that the others refer to.

    They all used to default to the admin role alone. With [oslo_policy] enforce_new_defaults = False, the old default
    is still accepted, which lets administrators reshape.
    """
    yield policy.RuleDefault("admin_api", "role:admin", "Callers with the admin role.", scope_types=PROJECT_SCOPE)
    yield _replacing_admin("service_api", "role:service", "Other OpenStack services.")
    yield _replacing_admin("admin_or_service_api", "role:admin or role:service", "Administrators and services.")
    yield _replacing_admin(
        "project_reader_api", "role:reader and project_id:%(project_id)s", "Readers in the requested project."
    )
    yield _replacing_admin(
        "admin_or_project_reader_or_service_api",
        "role:admin or rule:project_reader_api or role:service",
        "Administrators, services, and readers in the requested project.",
    )


def _replacing_admin(name: str, check: str, description: str) -> policy.RuleDefault:
    return policy.RuleDefault(
        name,
        check,
        description,
        deprecated_rule=policy.DeprecatedRule(
            name="rule:admin_api",
            check_str="role:admin",
            deprecated_reason="Services have their own role and no longer need to be administrators.",
            deprecated_since="Wallaby",
        ),
        # Upstream gives this rule no scope; only rules with a scope refer to it.
        scope_types=None if name == "project_reader_api" else PROJECT_SCOPE,
    )


def _operations(operations: Operations) -> Iterator[policy.RuleDefault]:
    for name, requests in operations:
        yield policy.DocumentedRuleDefault(
            name,
            CHECKS.get(name, ADMIN_OR_SERVICE),
            f"Guards {' and '.join(f'{method} {path}' for method, path in requests)}.",
            [{"method": method, "path": path} for method, path in requests],
            scope_types=PROJECT_SCOPE,
        )
