"""The Gradio page: live camera, comparison of two methods, files, and what the model is."""
