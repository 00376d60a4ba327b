"""The device allocator with a memo: the hosts of a cloud are much alike, so most pose the same problem again."""

from placement.allocators.budget import Budget
from placement.allocators.devices import DeviceAllocations, Host, Request, allocate, host_key
from placement.candidates.canonical import Memo

MAX_HOSTS = 10_000
"""How many forms of hosts to remember: many, because allocating again costs far more than looking a form up."""


class DeviceMemo:
    """Allocates in the hosts for one request, and only once in those that are the same to it.

    Args:
        most: how many ways are wanted of each host.
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._memo: Memo[DeviceAllocations] = Memo(MAX_HOSTS)

    def allocate(self, host: Host, request: Request, budget: Budget) -> DeviceAllocations:
        """Return what the allocator finds. Once no steps are left, only what is in the memo is found.

        Args:
            host: a host. Its devices and places have numbers for names, so that hosts built alike are equal.
            request: what is asked of it: for all hosts of a memo the same labels, amounts and rules.
            budget: the steps that may be taken.
        """
        key = host_key(host, request)
        found = self._memo.get(key)
        if found is None and budget.is_used_up:
            return DeviceAllocations((), complete=False)
        if found is None:
            found = allocate(host, request, most=self._most, budget=budget)
            self._memo.remember(key, found)
        return found
