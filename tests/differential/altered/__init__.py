"""The reference, broken or corrected on purpose; in a separate directory from which its environment imports."""
