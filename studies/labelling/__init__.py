"""Study of labelling: which frames to label next, and how well wrong labels are found."""
