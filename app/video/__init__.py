"""The command video, and the parts that the page shares with it: the loop, rendering, files, the report."""
