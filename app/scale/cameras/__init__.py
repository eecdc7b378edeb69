"""`steadyseg cameras`: many streams, watched for ever."""
