"""The words of the business as plain values."""
