"""Several clients at once, on real databases."""
