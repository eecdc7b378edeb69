"""Image classifiers, related families in a file, with optional MC dropout and spatial smoothing."""
