"""The search behind GET /allocation_candidates: pure functions over plain values."""
