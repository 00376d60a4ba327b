"""The tests; modules shared by several kinds of tests are next to their directories."""
