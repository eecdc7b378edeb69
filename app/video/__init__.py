"""The command video, and what the page shares with it: the loop, rendering, files, the report."""
