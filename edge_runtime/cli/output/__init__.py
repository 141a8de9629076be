"""How a result looks: JSON, tables, CSV, Markdown, text and a picture."""
