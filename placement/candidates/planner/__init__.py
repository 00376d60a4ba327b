"""The planner's search: one question in one snapshot, its trees best first, and what is proposed in each."""
