"""The options of this server under the name that openstack-placement gave the module: for code made for it."""

from placement.settings.loading import register_options as register_opts
from placement.settings.options import list_opts

__all__ = ["list_opts", "register_opts"]
