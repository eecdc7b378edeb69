"""A page that runs a stateful graph file in the visitor's browser: a folder for any web host."""
