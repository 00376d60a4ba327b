"""The use cases behind /planner/v1: candidates, claims, headroom; docs/explanation/architecture.md shows a request."""
