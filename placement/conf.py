"""The options of this server, under openstack-placement's module name, for code written against it."""

from placement.settings.loading import register_options as register_opts
from placement.settings.options import list_opts

__all__ = ["list_opts", "register_opts"]
