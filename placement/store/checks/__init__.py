"""What may be wrong in a database, or no longer wanted."""
