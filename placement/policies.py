"""The policy rules of this server, under openstack-placement's module name, for oslo.policy's tools and other code."""

import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

from oslo_config import cfg

from placement.api.routes import ROUTES
from placement.auth.policy import enforcer_for
from placement.settings.loading import PROJECT, read

if TYPE_CHECKING:
    from oslo_policy.policy import Enforcer, RuleDefault

    from placement.auth.rules import Operations


@cache
def operations() -> "Operations":
    """Return the requests that each rule guards."""
    guarded: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for route in ROUTES:
        for rule in (route.rule, *route.view_rules):
            request = route.method, re.sub(r"<(\w+)>", r"{\1}", route.path)
            if rule is not None and request not in guarded[rule]:
                guarded[rule].append(request)
    return tuple((rule, tuple(requests)) for rule, requests in guarded.items())


def list_rules() -> "list[RuleDefault]":
    """Return all rules with their defaults."""
    # oslo.policy is large, so it is imported on use.
    from placement.auth.rules import rules_for  # noqa: PLC0415

    return rules_for(operations())


def enforcer() -> "Enforcer":
    """Return an enforcer with the rules in force.

    oslo.policy's tools know only the global configuration object, and open the policy file by the name in it.
    """
    files = getattr(cfg.CONF, "config_file", None) or read().config_file
    cfg.CONF([], project=PROJECT, default_config_files=files)
    made = enforcer_for(cfg.CONF, operations())
    if path := cfg.CONF.find_file(made.policy_file):
        cfg.CONF.set_override("policy_file", path, group="oslo_policy")
    made.load_rules()
    return made
