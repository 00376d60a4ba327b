"""How many steps the searches of one request may take together, those for all members of a gang included."""

from placement.allocators.devices.search import STEPS

STEPS_PER_REQUEST = 4 * STEPS


class Allowance:
    """The steps that are left of those of a request.

    Members of a gang draw from the same one, each at most its share: what one leaves is there for the next ones.
    """

    def __init__(self, steps: int = STEPS_PER_REQUEST) -> None:
        self._left = steps
        self._kept = 0

    @property
    def is_used_up(self) -> bool:
        """Whether nothing is left for anybody."""
        return self._left <= 0

    @property
    def for_a_search(self) -> int:
        """How many steps the next search may take."""
        return min(STEPS, max(0, self._left - self._kept))

    def share(self, *, among: int) -> None:
        """Let one of so many take its share from now on."""
        self._kept = self._left - self._left // among

    def take(self, steps: int) -> None:
        """Take so many steps. A search may take somewhat more than it was told."""
        self._left -= steps
