"""What providers use and can give of each class, kept by triggers, whoever writes."""
