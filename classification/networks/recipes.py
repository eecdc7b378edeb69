"""Presets meet networks: what a preset says about the network goes where the network has a use for it."""

from dataclasses import fields, replace

from classification.networks.layout import FAMILIES, MODELS, NOT_FOR_TIMM, TIMM
from classification.options import ClassifierOptions, ClassTrainConfig


def drop_unsuited(config: ClassTrainConfig, preset: ClassTrainConfig) -> ClassTrainConfig:
    """The configuration without those of the preset's options that the chosen network lacks, as a VGG has no stem.

    Others that it lacks stay, and are refused with it: its user believes that they do something.
    """
    options, default = config.classifier, ClassifierOptions()
    if options.model in MODELS:
        lacking = {"stem", "stochastic_depth"} - FAMILIES[MODELS[options.model][0]].options
    elif options.model.startswith(TIMM):
        lacking = {"stem", *NOT_FOR_TIMM}
    else:
        return config
    unfit = {
        field.name: getattr(default, field.name)
        for field in fields(options)
        if field.name in lacking and getattr(options, field.name) == getattr(preset.classifier, field.name)
    }
    return replace(config, classifier=replace(options, **unfit))
