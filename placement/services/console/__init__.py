"""Use cases of the console's pages: each reads the contents of a page in one snapshot."""
