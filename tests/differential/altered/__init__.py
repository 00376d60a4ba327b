"""The reference with something wrong in it, alone in a directory that its environment can import from."""
