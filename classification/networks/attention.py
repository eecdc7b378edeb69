"""Multi-head self-attention inside windows of a feature map, exact for every map size."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class WindowAttention(nn.Module):
    """(B, C_in, H, W) -> (B, C_out, H, W): each point attends to the points of its own window x window square.

    The squares tile the map from its top left corner; those that stick out of it have only the points inside, however
    small the map is. weight(i, j) = softmax_j(q_i . k_j / sqrt(head_width) + b[y_j - y_i, x_j - x_i]); the table b has
    (2 window - 1)^2 numbers that all heads share (arXiv 2202.06709, App. B, without shifts). q, k and v have no bias,
    the output projection has.
    """

    def __init__(self, channels_in: int, channels_out: int, heads: int, head_width: int, window: int) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.to_qkv = nn.Conv2d(channels_in, 3 * heads * head_width, 1, bias=False)
        # Flat, because the optimiser takes what has one dimension for a bias and does not decay it.
        self.position_bias = nn.Parameter(torch.empty((2 * window - 1) ** 2))
        nn.init.trunc_normal_(self.position_bias, std=0.02)
        self.to_out = nn.Conv2d(heads * head_width, channels_out, 1)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, window={self.window}"

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        # A window never needs more rows than the map has: the table is indexed by offsets, so a smaller one is the
        # same.
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
        """(B, 3 h d, H, W) -> three times (windows, B h, rows * columns, d): a mask per window is shared by B and h."""
        batch, channels, height, width = qkv.shape
        d = channels // (3 * self.heads)
        x = qkv.reshape(batch, 3, self.heads, d, height // rows, rows, width // columns, columns)
        x = x.permute(1, 4, 6, 0, 2, 5, 7, 3)  # 3, windows down, windows across, B, h, rows, columns, d
        x = x.reshape(3, (height // rows) * (width // columns), batch * self.heads, rows * columns, d)
        return x[0], x[1], x[2]

    def _map(self, x: Tensor, height: int, width: int, rows: int, columns: int) -> Tensor:
        """The way back: (windows, B h, rows * columns, d) -> (B, h d, H, W)."""
        d = x.shape[-1]
        x = x.reshape(height // rows, width // columns, -1, self.heads, rows, columns, d)
        x = x.permute(2, 3, 6, 0, 4, 1, 5)  # B, h, d, windows down, rows, windows across, columns
        return x.reshape(-1, self.heads * d, height, width)

    def _bias(self, rows: int, columns: int) -> Tensor:
        """(L, L) for L = rows * columns points of a window: the table's number for the offset from i to j."""
        device, middle = self.position_bias.device, self.window - 1
        y = torch.arange(rows, device=device).repeat_interleave(columns)
        x = torch.arange(columns, device=device).repeat(rows)
        index = (y[None] - y[:, None] + middle) * (2 * self.window - 1) + (x[None] - x[:, None] + middle)
        return self.position_bias[index]


def _padding_bias(height: int, width: int, rows: int, columns: int, like: Tensor) -> Tensor:
    """(windows, 1, 1, L): 0 for a point of the map and -inf for one that is padding; no window is padding alone."""
    y = torch.arange(height + -height % rows, device=like.device).reshape(-1, 1, rows, 1) >= height
    x = torch.arange(width + -width % columns, device=like.device).reshape(1, -1, 1, columns) >= width
    outside = (y | x).reshape(-1, 1, 1, rows * columns)
    return torch.zeros(outside.shape, dtype=like.dtype, device=like.device).masked_fill(outside, float("-inf"))
