"""Planner requests in one tree: from groups, rules and paths to the allocators, and back to proposals."""
