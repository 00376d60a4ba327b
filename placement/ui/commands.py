"""Shell commands to copy: the console itself changes nothing."""

import shlex

from placement.ui.names import visible


def commands_for_host(uuid: str, name: str) -> list[str]:
    """Return commands that take a host out of service, and that show the same data as its page."""
    disable = f"openstack compute service set --disable --disable-reason maintenance {shlex.quote(name)} nova-compute"
    return [
        # Nova knows no host whose name has invisible characters, and such a name is unsafe to paste.
        *([disable] if visible(name) == name else []),
        f"openstack resource provider show --allocations {uuid}",
        f"openstack resource provider inventory list {uuid}",
    ]


def commands_for_consumer(uuid: str, type_: str | None) -> list[str]:
    """Return commands that move a consumer, and that show what it holds."""
    move = [f"openstack server migrate --live-migration {uuid}"] if type_ in ("INSTANCE", None) else []
    return [*move, f"openstack resource provider allocation show {uuid}"]
