"""The `edge-run` command line; one module a command."""
