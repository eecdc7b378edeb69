"""Where frames come from: video files, image folders, cameras, addresses, the procedural street."""
