"""CamVid's class ids by name."""

from core.classes import CAMVID

SKY, BUILDING, POLE, ROAD, PAVEMENT, TREE, SIGN, FENCE, CAR, PEDESTRIAN, BICYCLIST = range(len(CAMVID))
