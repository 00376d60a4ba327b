"""The journal of changes to providers and consumers: triggers write it in the transaction that makes the change."""
