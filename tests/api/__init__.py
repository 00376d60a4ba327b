"""The server over HTTP, in process."""
