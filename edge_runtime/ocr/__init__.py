"""Pictures and PDFs into lines of text."""
