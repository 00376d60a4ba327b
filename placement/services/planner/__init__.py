"""The use cases behind /planner/v1: candidates, claims and headroom. docs/architecture.md follows a request through."""
