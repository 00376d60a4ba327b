"""Data for the console's pages that no API request returns: sums, pages of long lists, whole trees."""
