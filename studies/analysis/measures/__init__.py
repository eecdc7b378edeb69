"""The papers' studies of what a network computes and of the loss around its weights; the commands are in
studies/analysis."""
