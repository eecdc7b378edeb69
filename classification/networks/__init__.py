"""Image classifiers, a family a file, with optional MC dropout and spatial smoothing."""
