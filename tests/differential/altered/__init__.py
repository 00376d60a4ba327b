"""The reference with something wrong in it, or something right; alone in a directory its environment imports from."""
