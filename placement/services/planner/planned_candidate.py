"""A candidate that was planned, with what is said about it."""

from dataclasses import dataclass

from placement.candidates.compose.proposals import Proposal
from placement.candidates.scores import Score


@dataclass(frozen=True, slots=True)
class PlannedCandidate:
    """A proposal and its score.

    Args:
        proposal: the proposal.
        score: its score.
        like: the root of the tree whose providers it names, where it lies in a further tree that is like that one.
    """

    proposal: Proposal
    score: Score
    like: int | None = None

    @property
    def rank(self) -> tuple[bool, float]:
        """What sorts candidates: those last that break the reserve of scarce resources, and the best score first."""
        return self.score.keeps_proportion is False, -self.score.total
