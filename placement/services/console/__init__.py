"""Use cases of the console's pages: each reads what a page shows, in one snapshot."""
