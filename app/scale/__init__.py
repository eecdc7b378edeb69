"""Work in several processes: many videos (`batch`) and many cameras (`cameras`), on this machine's cores or on a Ray
cluster."""
