"""The allocation algorithms as a small pure library."""
