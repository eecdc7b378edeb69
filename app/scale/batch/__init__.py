"""`steadyseg batch`: many videos, each into a folder of its own."""
