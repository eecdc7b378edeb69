"""Multi-head self-attention inside windows of a feature map, exact for every map size."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class WindowAttention(nn.Module):
    """(B, C_in, H, W) -> (B, C_out, H, W): each point attends to the points of its own window x window square.

    The squares tile the map from its top left corner; those that stick out of it have only the points inside, however
    small the map is. The weight of point j for point i is
    softmax_j(q_i . k_j / sqrt(head_width) + b[y_j - y_i, x_j - x_i]). All heads share the table b of (2 window - 1)^2
    numbers (arXiv 2202.06709, App. B, without shifts). q, k and v have no bias; the output projection has one.
    """

    def __init__(self, channels_in: int, channels_out: int, heads: int, head_width: int, window: int) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.to_qkv = nn.Conv2d(channels_in, 3 * heads * head_width, 1, bias=False)
        # Flat, because the optimiser does not decay parameters of one dimension.
        self.position_bias = nn.Parameter(torch.empty((2 * window - 1) ** 2))
        nn.init.trunc_normal_(self.position_bias, std=0.02)
        self.to_out = nn.Conv2d(heads * head_width, channels_out, 1)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, window={self.window}"

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        # A window is cut to the map's size: the table is indexed by offsets, so the result is the same.
        rows, columns = min(self.window, height), min(self.window, width)
        below, right = -height % rows, -width % columns
        qkv = F.pad(self.to_qkv(x), (0, right, 0, below))
        q, k, v = self._windows(qkv, rows, columns)
        bias = self._bias(rows, columns)[None, None]
        if below or right:
            bias = bias + _padding_bias(height, width, rows, columns, bias)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.to_out(self._map(mixed, height + below, width + right, rows, columns)[..., :height, :width])

    def _windows(self, qkv: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
        """Splits (B, 3 h d, H, W) into q, k, v of (windows, B h, rows * columns, d); B and h share a window's mask."""
        batch, channels, height, width = qkv.shape
        d = channels // (3 * self.heads)
        x = qkv.reshape(batch, 3, self.heads, d, height // rows, rows, width // columns, columns)
        x = x.permute(1, 4, 6, 0, 2, 5, 7, 3)  # 3, windows down, windows across, B, h, rows, columns, d
        x = x.reshape(3, (height // rows) * (width // columns), batch * self.heads, rows * columns, d)
        return x[0], x[1], x[2]

    def _map(self, x: Tensor, height: int, width: int, rows: int, columns: int) -> Tensor:
        """Joins the windows again: (windows, B h, rows * columns, d) -> (B, h d, H, W)."""
        d = x.shape[-1]
        x = x.reshape(height // rows, width // columns, -1, self.heads, rows, columns, d)
        x = x.permute(2, 3, 6, 0, 4, 1, 5)  # B, h, d, windows down, rows, windows across, columns
        return x.reshape(-1, self.heads * d, height, width)

    def _bias(self, rows: int, columns: int) -> Tensor:
        """Returns the bias (L, L) of a window's L = rows * columns points: the entry of the offset from i to j."""
        device, middle = self.position_bias.device, self.window - 1
        y = torch.arange(rows, device=device).repeat_interleave(columns)
        x = torch.arange(columns, device=device).repeat(rows)
        index = (y[None] - y[:, None] + middle) * (2 * self.window - 1) + (x[None] - x[:, None] + middle)
        return self.position_bias[index]


def _padding_bias(height: int, width: int, rows: int, columns: int, like: Tensor) -> Tensor:
    """Returns the mask (windows, 1, 1, L): 0 for points of the map, -inf for padding; no window is padding alone."""
    y = torch.arange(height + -height % rows, device=like.device).reshape(-1, 1, rows, 1) >= height
    x = torch.arange(width + -width % columns, device=like.device).reshape(1, -1, 1, columns) >= width
    outside = (y | x).reshape(-1, 1, 1, rows * columns)
    return torch.zeros(outside.shape, dtype=like.dtype, device=like.device).masked_fill(outside, float("-inf"))
