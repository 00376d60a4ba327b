"""Use cases of fair shares: who has how much, who is next, who gives back, and where that makes room."""
