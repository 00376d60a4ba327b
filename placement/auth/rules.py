"""The policy rules: openstack-placement's names, defaults and scopes, so that its policy.yaml works unchanged.

The rules of the planner (``placement:planner:*``) and of the metrics are this server's own.

Importing this module imports oslo.policy, which is large, so ``policy.py`` does it on first use.
"""

from collections.abc import Iterator

from oslo_policy import policy

PROJECT_SCOPE = ["project"]

ADMIN_OR_SERVICE = "rule:admin_or_service_api"
ADMIN_OR_READER_OR_SERVICE = "rule:admin_or_project_reader_or_service_api"
SERVICE = "rule:service_api"

OPERATIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "placement:resource_providers:list": (("GET", "/resource_providers"),),
    "placement:resource_providers:create": (("POST", "/resource_providers"),),
    "placement:resource_providers:show": (("GET", "/resource_providers/{uuid}"),),
    "placement:resource_providers:update": (("PUT", "/resource_providers/{uuid}"),),
    "placement:resource_providers:delete": (("DELETE", "/resource_providers/{uuid}"),),
    "placement:resource_classes:list": (("GET", "/resource_classes"),),
    "placement:resource_classes:create": (("POST", "/resource_classes"),),
    "placement:resource_classes:show": (("GET", "/resource_classes/{name}"),),
    "placement:resource_classes:update": (("PUT", "/resource_classes/{name}"),),
    "placement:resource_classes:delete": (("DELETE", "/resource_classes/{name}"),),
    "placement:resource_providers:inventories:list": (("GET", "/resource_providers/{uuid}/inventories"),),
    "placement:resource_providers:inventories:create": (("POST", "/resource_providers/{uuid}/inventories"),),
    "placement:resource_providers:inventories:show": (
        ("GET", "/resource_providers/{uuid}/inventories/{resource_class}"),
    ),
    "placement:resource_providers:inventories:update": (
        ("PUT", "/resource_providers/{uuid}/inventories"),
        ("PUT", "/resource_providers/{uuid}/inventories/{resource_class}"),
    ),
    "placement:resource_providers:inventories:delete": (
        ("DELETE", "/resource_providers/{uuid}/inventories"),
        ("DELETE", "/resource_providers/{uuid}/inventories/{resource_class}"),
    ),
    "placement:resource_providers:aggregates:list": (("GET", "/resource_providers/{uuid}/aggregates"),),
    "placement:resource_providers:aggregates:update": (("PUT", "/resource_providers/{uuid}/aggregates"),),
    "placement:resource_providers:usages": (("GET", "/resource_providers/{uuid}/usages"),),
    "placement:usages": (("GET", "/usages"),),
    "placement:traits:list": (("GET", "/traits"),),
    "placement:traits:show": (("GET", "/traits/{name}"),),
    "placement:traits:update": (("PUT", "/traits/{name}"),),
    "placement:traits:delete": (("DELETE", "/traits/{name}"),),
    "placement:resource_providers:traits:list": (("GET", "/resource_providers/{uuid}/traits"),),
    "placement:resource_providers:traits:update": (("PUT", "/resource_providers/{uuid}/traits"),),
    "placement:resource_providers:traits:delete": (("DELETE", "/resource_providers/{uuid}/traits"),),
    "placement:allocations:manage": (("POST", "/allocations"),),
    "placement:allocations:list": (("GET", "/allocations/{consumer_uuid}"),),
    "placement:allocations:update": (("PUT", "/allocations/{consumer_uuid}"),),
    "placement:allocations:delete": (("DELETE", "/allocations/{consumer_uuid}"),),
    "placement:resource_providers:allocations:list": (("GET", "/resource_providers/{uuid}/allocations"),),
    "placement:allocation_candidates:list": (("GET", "/allocation_candidates"),),
    "placement:reshaper:reshape": (("POST", "/reshaper"),),
    "placement:metrics:show": (("GET", "/metrics"),),
    "placement:planner:show": (("GET", "/planner/v1"),),
    "placement:planner:audit": (("POST", "/planner/v1/audit"),),
    "placement:planner:explain": (("GET", "/planner/v1/explain"),),
    "placement:planner:headroom": (("GET", "/planner/v1/headroom"), ("POST", "/planner/v1/headroom")),
    "placement:planner:inventory:list": (("GET", "/planner/v1/inventory"),),
    "placement:planner:journal": (("GET", "/planner/v1/journal"), ("GET", "/planner/v1/journal/at")),
    "placement:planner:profiles:list": (("GET", "/planner/v1/profiles"),),
    "placement:planner:candidates": (("POST", "/planner/v1/candidates"),),
    "placement:planner:claims": (("POST", "/planner/v1/claims"),),
    "placement:planner:scores": (("POST", "/planner/v1/scores"),),
    "placement:planner:trees:list": (("GET", "/planner/v1/trees"),),
    "placement:planner:trees:show": (("GET", "/planner/v1/trees/{uuid}"),),
    "placement:planner:trees:drain": (
        ("POST", "/planner/v1/trees/{uuid}/drain"),
        ("POST", "/planner/v1/trees/{uuid}/enable"),
    ),
    "placement:planner:trees:remove": (("DELETE", "/planner/v1/trees/{uuid}"),),
    # Also checked for requests that define a profile inline.
    "placement:planner:inline_profile": (
        ("POST", "/planner/v1/candidates"),
        ("POST", "/planner/v1/claims"),
        ("POST", "/planner/v1/scores"),
    ),
    "placement:planner:fair_share:show": (("GET", "/planner/v1/fair-share"),),
    "placement:planner:fair_share:show_all": (("GET", "/planner/v1/fair-share"),),
    "placement:planner:fair_share:order": (("POST", "/planner/v1/fair-share/order"),),
    "placement:planner:fair_share:fill": (("POST", "/planner/v1/fair-share/fill"),),
    "placement:planner:fair_share:reclaim": (("POST", "/planner/v1/fair-share/reclaim"),),
}
"""The API's rules and the requests that each one guards."""

CHECKS = {
    "placement:usages": ADMIN_OR_READER_OR_SERVICE,
    "placement:reshaper:reshape": SERVICE,
    # Readers of a project see entries about its consumers.
    "placement:planner:journal": ADMIN_OR_READER_OR_SERVICE,
    # The path to the caller's own project; the whole tree requires show_all.
    "placement:planner:fair_share:show": ADMIN_OR_READER_OR_SERVICE,
}
"""Exceptions to the default, ADMIN_OR_SERVICE."""


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules with their defaults, the entry point for oslo.policy's tools."""
    return [*_roles(), *_operations()]


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


def _operations() -> Iterator[policy.RuleDefault]:
    for name, requests in OPERATIONS.items():
        yield policy.DocumentedRuleDefault(
            name,
            CHECKS.get(name, ADMIN_OR_SERVICE),
            f"Guards {' and '.join(f'{method} {path}' for method, path in requests)}.",
            [{"method": method, "path": path} for method, path in requests],
            scope_types=PROJECT_SCOPE,
        )
