"""The product: command line, video sources and sinks, rendering, the page."""
