"""Image classifiers, one family a file, with optional MC dropout and spatial smoothing."""
