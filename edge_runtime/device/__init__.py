"""Device facts and measured choices."""
