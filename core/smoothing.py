"""Spatial smoothing: Smooth(z) = Blur(Prob(z)) before a subsampling layer (arXiv 2105.12639, Eq. 5-8)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.errors import InputError
from steadyseg.core.options import PaddingName, ProbName

KERNELS_1D: dict[int, tuple[float, ...]] = {1: (1,), 2: (1, 1), 3: (1, 2, 1), 5: (1, 4, 6, 4, 1)}
"""The paper's 1-D kernels by size; the 2-D kernel is their outer product divided by its sum."""

DEFAULT_SCALE = {
    "tanh": 10.0,
    "relu6": 6.0,
    "constant": 5.0,
    "sigmoid": 10.0,
    "softmax": 10.0,
    "bn-tanh": 10.0,
    "signed-tanh": 10.0,
    "none": 1.0,
}
"""The published parameter t of each Prob (Tables A.1 and B.1, and its code); signed-tanh is ours, with tanh's t."""


class Prob(nn.Module):
    """Turns feature maps into bounded, probability-like ones; any shape in, the same shape out.

    `tanh`: ReLU(t tanh(z / t)), in [0, t]. `relu6`: clamp to [0, t]. `constant`: z / t without ReLU. `sigmoid`: ReLU(4
    t (sigmoid(z / t) - 1/2)), in [0, 2 t]. `softmax`: t softmax(z / t) over channels, in [0, t]. `bn-tanh`: tanh of
    BatchNorm(z) with trained scale and shift; it needs the number of channels. `signed-tanh`: t tanh(z / t) without
    ReLU, in [-t, t], for maps that do not come from an activation. `none`: identity.
    """

    def __init__(self, name: ProbName = "tanh", scale: float | None = None, channels: int | None = None) -> None:
        super().__init__()
        if name not in DEFAULT_SCALE:
            raise InputError(f"unknown Prob {name!r}; choose from {', '.join(DEFAULT_SCALE)}")
        self.name = name
        self.scale = DEFAULT_SCALE[name] if scale is None else scale
        if self.scale <= 0:
            raise InputError(f"the scale of Prob must be positive, got {self.scale}")
        if name == "bn-tanh":
            if channels is None:
                raise InputError("Prob bn-tanh has a BatchNorm, which needs the number of channels of its map")
            self.norm = nn.BatchNorm2d(channels)

    def extra_repr(self) -> str:
        return f"{self.name}, scale={self.scale}"

    def forward(self, z: Tensor) -> Tensor:
        t = self.scale
        if self.name == "bn-tanh":
            z = self.norm(z)
        if self.name in ("tanh", "bn-tanh"):
            return F.relu(t * torch.tanh(z / t))
        if self.name == "signed-tanh":
            return t * torch.tanh(z / t)
        if self.name == "relu6":
            return z.clamp(0.0, t)
        if self.name == "constant":
            return z / t
        if self.name == "sigmoid":
            return F.relu(4.0 * t * (torch.sigmoid(z / t) - 0.5))
        if self.name == "softmax":
            return t * torch.softmax(z / t, 1)
        return z


class Blur(nn.Module):
    """A fixed depth-wise blur of unit sum, zero padding; (B, C, H, W) in.

    published, k = 2: an average pool of kernel 2, stride 1, padding 1, so the map grows by one: (H + 1, W + 1).
    same: (H, W); an even kernel pads one more on the right and below. The other kernels are "same" in both.
    """

    kernel: Tensor

    def __init__(self, size: int = 2, padding: PaddingName = "published") -> None:
        super().__init__()
        if size not in KERNELS_1D:
            raise InputError(f"unknown blur size {size}; choose from {', '.join(map(str, KERNELS_1D))}")
        if padding not in ("published", "same"):
            raise InputError(f"unknown blur padding {padding!r}; choose from published, same")
        self.size, self.padding = size, padding
        line = torch.tensor(KERNELS_1D[size], dtype=torch.float32)
        kernel = torch.outer(line, line)
        self.register_buffer("kernel", kernel / kernel.sum(), persistent=False)

    def extra_repr(self) -> str:
        return f"size={self.size}, padding={self.padding}"

    def forward(self, x: Tensor) -> Tensor:
        if self.size == 1:
            return x
        if self.size == 2:  # four shares of 1/4: the pool is several times faster than a depth-wise convolution
            if self.padding == "published":
                return F.avg_pool2d(x, kernel_size=2, stride=1, padding=1)
            return F.avg_pool2d(F.pad(x, (0, 1, 0, 1)), kernel_size=2, stride=1)
        channels = x.shape[1]
        weight = self.kernel.to(x.dtype).expand(channels, 1, self.size, self.size)
        return F.conv2d(x, weight, padding=self.size // 2, groups=channels)


class SpatialSmoothing(nn.Module):
    """Blur(Prob(z)); only bn-tanh has trainable parameters and needs the number of `channels`."""

    def __init__(
        self,
        prob: ProbName = "tanh",
        size: int = 2,
        padding: PaddingName = "published",
        scale: float | None = None,
        channels: int | None = None,
    ) -> None:
        super().__init__()
        self.prob = Prob(prob, scale, channels)
        self.blur = Blur(size, padding)

    def forward(self, z: Tensor) -> Tensor:
        return self.blur(self.prob(z))
