"""Labelled images: CamVid, folders in its layout, augmentation, moving stills."""
