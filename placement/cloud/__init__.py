"""The providers of a cloud as numpy columns. Columns propose; rows under lock decide who gets it."""
