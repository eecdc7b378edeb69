"""Multi-head self-attention inside windows of a feature map, exact for every map size."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
    """Returns softmax(q k^T / sqrt(d) + bias) v of (..., T, d); -inf in the bias hides a token.

    It is written as products, because torch's fused kernel is slow backwards in bf16 on a CPU. Forward and backward (96
    pictures, 3 heads, 65 tokens, one core with AVX512-BF16), bf16: 16 ms, fused 73 ms; fp32: 38 ms, fused 33 ms.
    """
    scores = (q * q.shape[-1] ** -0.5) @ k.mT
    return (scores if bias is None else scores + bias).softmax(-1).to(v.dtype) @ v


class WindowAttention(nn.Module):
    """(B, C_in, H, W) -> (B, C_out, H, W): each point attends to the points of its own window x window square.

    The squares tile the map from its top left corner. In a map larger than a square they begin `shift` points above and
    left of it (shifted windows: Liu et al. 2021, arXiv 2103.14030, Sec. 3.2). A square that sticks out of the map has
    only the points inside. The weight of point j for point i is
    softmax_j(q_i . k_j / sqrt(head_width) + b[y_j - y_i, x_j - x_i]). All heads share the table b of (2 window - 1)^2
    numbers (arXiv 2202.06709, App. B). q, k and v have no bias; the output projection has a bias.
    """

    def __init__(
        self, channels_in: int, channels_out: int, heads: int, head_width: int, window: int, shift: int = 0
    ) -> None:
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.to_qkv = nn.Conv2d(channels_in, 3 * heads * head_width, 1, bias=False)
        # Flat, because the optimiser does not decay parameters of one dimension.
        self.position_bias = nn.Parameter(torch.empty((2 * window - 1) ** 2))
        nn.init.trunc_normal_(self.position_bias, std=0.02)
        self.to_out = nn.Conv2d(heads * head_width, channels_out, 1)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        # A window is cut to the map's size: the table is indexed by offsets, so the result is the same.
        rows, columns = min(self.window, height), min(self.window, width)
        above, left = (self.shift if side > self.window else 0 for side in (height, width))
        below, right = -(height + above) % rows, -(width + left) % columns
        qkv = F.pad(self.to_qkv(x), (left, right, above, below))
        q, k, v = self._windows(qkv, rows, columns)
        bias = self._bias(rows, columns)[None, None]
        if above or left or below or right:
            inside = F.pad(torch.ones(height, width, dtype=torch.bool, device=x.device), (left, right, above, below))
            bias = bias + _padding_bias(inside, rows, columns, bias)
        mixed = attend(q, k, v, bias)
        mixed = self._map(mixed, above + height + below, left + width + right, rows, columns)
        return self.to_out(mixed[..., above : above + height, left : left + width])

    def _windows(self, qkv: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
        """Splits (B, 3 h d, H, W) into q, k, v of (windows, B h, rows * columns, d); B and h share a window's mask."""
        batch, channels, height, width = qkv.shape
        d = channels // (3 * self.heads)
        x = qkv.permute(0, 2, 3, 1)  # channels last, as convolutions leave it: d numbers in a row are copied at once
        x = x.reshape(batch, height // rows, rows, width // columns, columns, 3, self.heads, d)
        x = x.permute(5, 1, 3, 0, 6, 2, 4, 7)  # 3, windows down, windows across, B, h, rows, columns, d
        x = x.reshape(3, (height // rows) * (width // columns), batch * self.heads, rows * columns, d)
        q, k, v = x.unbind()  # its backward copies once; for each of x[0], x[1], x[2] it would make zeros for all
        return q, k, v

    def _map(self, x: Tensor, height: int, width: int, rows: int, columns: int) -> Tensor:
        """Joins the windows again: (windows, B h, rows * columns, d) -> (B, h d, H, W)."""
        d = x.shape[-1]
        x = x.reshape(height // rows, width // columns, -1, self.heads, rows, columns, d)
        x = x.permute(2, 0, 4, 1, 5, 3, 6)  # B, windows down, rows, windows across, columns, h, d
        return x.reshape(-1, height, width, self.heads * d).permute(0, 3, 1, 2)

    def _bias(self, rows: int, columns: int) -> Tensor:
        """Returns the bias (L, L) of a window's L = rows * columns points: the entry of the offset from i to j."""
        device, middle = self.position_bias.device, self.window - 1
        y = torch.arange(rows, device=device).repeat_interleave(columns)
        x = torch.arange(columns, device=device).repeat(rows)
        index = (y[None] - y[:, None] + middle) * (2 * self.window - 1) + (x[None] - x[:, None] + middle)
        return self.position_bias[index]


def _padding_bias(inside: Tensor, rows: int, columns: int, like: Tensor) -> Tensor:
    """Returns the mask (windows, 1, 1, L): 0 for points of the map (every window has some), -inf for padding."""
    height, width = inside.shape
    outside = ~inside.reshape(height // rows, rows, width // columns, columns).transpose(1, 2)
    outside = outside.reshape(-1, 1, 1, rows * columns)
    return torch.zeros(outside.shape, dtype=like.dtype, device=like.device).masked_fill(outside, float("-inf"))
