"""Two or three writing requests, statement by statement, in every order that can make a difference."""
