"""Help with labels: which frames to label next, and which labels to look at again."""
