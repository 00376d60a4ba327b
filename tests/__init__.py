"""The tests; what several kinds of tests share is next to their directories."""
