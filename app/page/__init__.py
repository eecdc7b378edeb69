"""The Gradio page: live camera, comparison of two methods, files, and a description of the model."""
