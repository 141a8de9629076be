"""Model files: catalogue, download, verification, optimisation."""
