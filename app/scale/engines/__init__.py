"""Where the tasks of a batch run: processes of this machine, or Ray. They do not know what a task does."""
