"""Drawing of each thing on the street; one call paints colour and class."""
