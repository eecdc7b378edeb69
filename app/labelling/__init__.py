"""Labels of label tools, in and out, and the labels to look at again."""
