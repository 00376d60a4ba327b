"""The API reference against the server: it is current, its examples hold, and no answer is missing from it."""
