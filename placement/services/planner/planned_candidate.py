"""A planned candidate with its score."""

from dataclasses import dataclass

from placement.candidates.compose.proposals import Proposal
from placement.candidates.scores import Score


@dataclass(frozen=True, slots=True)
class PlannedCandidate:
    """A proposal and its score.

    Args:
        proposal: the proposal.
        score: its score.
        like: for a hypothetical tree, the root of the tree it is modelled on, whose providers the proposal names.
    """

    proposal: Proposal
    score: Score
    like: int | None = None

    @property
    def rank(self) -> tuple[bool, float]:
        """The sort key: candidates that break the reserve of scarce resources last, otherwise the best score first."""
        return self.score.keeps_proportion is False, -self.score.total
