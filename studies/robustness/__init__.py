"""The study `robustness`: one file a part, and the report."""
