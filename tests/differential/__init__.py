"""The same random clouds, writes and queries on this server and on the reference, answers compared."""
