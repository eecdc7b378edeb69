"""The procedural street: an endless labelled video that needs no file."""
