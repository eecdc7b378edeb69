"""What the procedural street is made of: camera, light, textures, meshes, layout."""
