"""Sources of frames: video files, image folders, cameras, addresses and the synthetic street."""
