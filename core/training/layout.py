"""Memory layout of a training: channels last, except for convolutions whose gradient oneDNN computes wrongly."""

from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

BLOCK = 16
"""Channels in a block of oneDNN's AVX-512 kernels. AVX2's blocks have 8, but oneDNN does not say which kernels it
runs."""


def use_channels_last(network: nn.Module, device: torch.device) -> None:
    """Moves the network to the device with weights in channels last, the faster layout of convolutions.

    oneDNN's x86 kernels (up to 3.13 at least) write past their workspace in the weight gradient of a strided 1x1
    convolution. It happens where the map is channels last and has fewer channels than a block
    (github.com/uxlfoundation/oneDNN/issues/6035). Measured in fp32 (AVX2, AVX-512) and bf16 (AVX-512): wrong gradients,
    "free(): invalid pointer", hangs. Such a convolution copies its input to the default layout first. The forward pass
    and the input's gradient are right. A step of ResNet-18 of width 8 (CIFAR, batch 64, fp32): 69 -> 77 ms; with all of
    it in the default layout 99 ms.
    """
    network.to(device).to(memory_format=torch.channels_last)
    for module in network.modules() if device.type == "cpu" else ():
        if type(module) is nn.Conv2d and 1 < module.groups == module.in_channels:
            module.__class__ = DepthwiseInFp32  # the same tensors and hooks; copies of the network keep it
    for convolution in miscomputed(network, device):
        convolution.weight.data = convolution.weight.data.clone(memory_format=torch.contiguous_format)
        convolution.register_forward_pre_hook(_copy_to_default_layout)


class DepthwiseInFp32(nn.Conv2d):
    """Depthwise convolution that computes in fp32 under autocast: oneDNN has no bf16 kernel for its gradient.

    EfficientNet-Lite0 at 240x320 on one core with AMX trains 6.4 images/s in fp32 and 5.4 in bf16. With this layer it
    trains 8.2 in bf16.
    """

    def forward(self, input: Tensor) -> Tensor:
        with torch.autocast(input.device.type, enabled=False):
            return super().forward(input.float()).to(input.dtype)


def miscomputed(network: nn.Module, device: torch.device) -> list[nn.Conv2d]:
    """Returns the convolutions whose gradient would be wrong in channels last."""
    return [module for module in network.modules() if device.type == "cpu" and _overflows(module)]


def _overflows(convolution: nn.Module) -> TypeGuard[nn.Conv2d]:
    """True for a convolution whose kernel overflows; padded and grouped convolutions use other kernels. Maps whose size
    is no multiple of the stride use other kernels too, but the size is not known here.
    """
    return (
        isinstance(convolution, nn.Conv2d)
        and convolution.kernel_size == (1, 1)
        and convolution.stride != (1, 1)
        and convolution.padding in ((0, 0), "valid")
        and convolution.groups == 1
        and convolution.in_channels < BLOCK
    )


def _copy_to_default_layout(_: nn.Module, inputs: tuple[Any, ...]) -> Tensor:
    """Copies the input by `clone`, because `contiguous` returns a map of one channel without a copy."""
    image: Tensor = inputs[0]
    return image.clone(memory_format=torch.contiguous_format)
