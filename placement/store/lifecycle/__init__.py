"""The life of a database: made, adopted, opened, brought up to date, copied, handed back."""
