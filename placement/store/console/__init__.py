"""What the pages of the console show that no request of the API asks for: sums, parts of long lists, whole trees."""
