"""The domain model as plain values."""
