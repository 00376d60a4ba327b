"""Usage kept per provider and class by triggers, whoever writes allocations."""
