"""Who is calling, and what they may do: the strategies of authentication, and policy."""

from placement.auth.policy import Policy
from placement.auth.strategy import Strategy, strategy_from

__all__ = ["Policy", "Strategy", "strategy_from"]
