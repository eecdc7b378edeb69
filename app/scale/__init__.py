"""Past one process: many videos (`batch`) and many cameras (`cameras`), on this machine's cores or on a Ray cluster."""
