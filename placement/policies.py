"""The policy rules of this server under the name that openstack-placement gave the module: for code made for it."""

from placement.auth.rules import list_rules

__all__ = ["list_rules"]
