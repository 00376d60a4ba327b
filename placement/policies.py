"""The policy rules of this server, under openstack-placement's module name, for code written against it."""

from placement.auth.rules import list_rules

__all__ = ["list_rules"]
