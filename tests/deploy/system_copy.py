"""A disposable copy of this system: whatever root installs and starts in it leaves the machine unchanged."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED = "/mnt"
ENTER = """
set -e
mount -t tmpfs copy "$1" && mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay copy -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --rbind /dev "$1/root/dev"
# Units with RemoveIPC delete what their user or group owns there, and the copy itself may lie there.
mount -t tmpfs shm "$1/root/dev/shm"
mount --bind "$2" "$1/root/mnt"
mount -t proc proc "$1/root/proc"
# Not chroot: services of systemd cannot have user namespaces there.
cd "$1/root" && pivot_root . . && umount --lazy . && cd /
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash
"""
BOOT = """
mount -t tmpfs run /run && mount -t sysfs sysfs /sys && mount -t cgroup2 cgroup /sys/fs/cgroup
find /usr/lib/systemd/system /etc/systemd/system -name '*.wants' -prune -exec rm -r {} +
echo $$ > "$(mktemp --directory /sys/fs/cgroup/copy-XXXXXX)/cgroup.procs"
container=copy unshare --mount --mount-proc --pid --fork --kill-child --cgroup bash -c '
    umount /sys/fs/cgroup && mount -t cgroup2 cgroup /sys/fs/cgroup
    exec /lib/systemd/systemd --unit=sysinit.target --log-target=console' > /mnt/systemd.log 2>&1 &
for try in $(seq 300); do [ -e /run/systemd/private ] && break; sleep 0.2; done
printf '#!/bin/sh\nexec nsenter --pid --target "$(pgrep --exact --oldest systemd)" systemctl "$@"\n' > /usr/bin/control
chmod +x /usr/bin/control
"""
"""Starts systemd in a copy, where ``control`` is its systemctl.

Nothing that systemd starts by itself is left, because settings of the kernel are the machine's, too.
"""


class SystemCopy:
    """The copy; ``shared`` is a directory of the machine that is mounted as /mnt in it."""

    def __init__(self, shell: "subprocess.Popen[str]", shared: Path) -> None:
        self._shell = shell
        self.shared = shared

    def run(self, script: str) -> str:
        """Run a script in it and return its output; services that it starts keep running."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        (self.shared / "script").write_text(f"set -e\n{script}\n")
        self._shell.stdin.write(f"bash {SHARED}/script > {SHARED}/said 2>&1 < /dev/null; echo $?\n")
        self._shell.stdin.flush()
        status = self._shell.stdout.readline().strip()
        said = (self.shared / "said").read_text() if status else "the copy could not be made"
        assert status == "0", f"{script}\n{said}"
        return said


@contextlib.contextmanager
def system_copy() -> Iterator[SystemCopy]:
    """Make a copy, and end everything that runs in it."""
    if os.geteuid() != 0:
        pytest.skip("only root can install a package")
    with tempfile.TemporaryDirectory(prefix="copy-") as root, tempfile.TemporaryDirectory(prefix="shared-") as shared:
        Path(shared).chmod(0o755)
        # When this shell ends, so does every process of its namespace.
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", ENTER, "enter", root, shared]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
            try:
                yield SystemCopy(shell, Path(shared))
            finally:
                shell.kill()
                shell.wait()
                _remove_control_groups()


def _remove_control_groups() -> None:
    """Remove those of a copy in which systemd ran."""
    for directory in sorted(Path("/sys/fs/cgroup").glob("**/copy-*/**/"), reverse=True):
        with contextlib.suppress(OSError):
            directory.rmdir()
