"""The command analyze robustness: one file a study, and the report."""
