"""The allocation algorithms: a small library of pure functions."""
