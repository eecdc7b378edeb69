"""The command bench: what each part of a step costs on this machine."""
