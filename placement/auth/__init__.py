"""Who is calling, and what they may do: authentication strategies and policy."""

from placement.auth.policy import Policy
from placement.auth.strategy import AuthStrategy, strategy_from

__all__ = ["AuthStrategy", "Policy", "strategy_from"]
