"""Use cases of fair shares: who has how much, who waits, who gives back, and where that makes room."""
