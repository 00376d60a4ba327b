"""The use cases behind /planner/v1/candidates and /planner/v1/claims."""
