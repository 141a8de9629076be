"""Documents and schemas into fields with evidence."""
