"""CIFAR and image folders, training and evaluation views."""
