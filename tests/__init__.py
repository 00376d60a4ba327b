"""The tests; what several kinds share stands here beside them."""
