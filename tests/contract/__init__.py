"""The API reference against the server: it is current, its examples work, and no answer is missing from it."""
