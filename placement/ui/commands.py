"""Lines for a shell, to be copied: the console itself changes nothing."""

import shlex

from placement.ui.names import visible


def commands_for_host(uuid: str, name: str) -> list[str]:
    """Return the lines that take a host out of service, and that ask the API what its page shows."""
    disable = f"openstack compute service set --disable --disable-reason maintenance {shlex.quote(name)} nova-compute"
    return [
        # A name that hides something is none of a host that nova knows, and no line to paste.
        *([disable] if visible(name) == name else []),
        f"openstack resource provider show --allocations {uuid}",
        f"openstack resource provider inventory list {uuid}",
    ]


def commands_for_leaver(uuid: str, type_: str | None) -> list[str]:
    """Return the lines that move a consumer, and that tell what it holds."""
    move = [f"openstack server migrate --live-migration {uuid}"] if type_ in ("INSTANCE", None) else []
    return [*move, f"openstack resource provider allocation show {uuid}"]
