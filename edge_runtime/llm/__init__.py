"""Language model engines and sessions."""
