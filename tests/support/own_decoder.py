"""User-defined decoders with different ways to pass the past. Costs of a token are computed by hand in test_past."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS, SIZE, HIDDEN, LAYERS, VOCABULARY = 64, 2, 8, 96, 2, 5000

Past = list[tuple[Tensor, Tensor]]


class Layer(nn.Module):
    """Grouped attention to the past and the new tokens, and a feed-forward network."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.o = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.k, self.v = (nn.Linear(WIDTH, HEADS * SIZE, bias=False) for _ in "kv")
        self.up, self.down = nn.Linear(WIDTH, HIDDEN, bias=False), nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(
        self, x: Tensor, past: tuple[Tensor, Tensor] | None, angles: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        q, k, v = (one(x).unflatten(-1, (-1, SIZE)).transpose(1, 2) for one in (self.q, self.k, self.v))
        if angles is not None:
            q, k = q * angles, k * angles
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        seen = functional.scaled_dot_product_attention(q, k, v, enable_gqa=True, is_causal=past is None)
        x = x + self.o(seen.transpose(1, 2).flatten(2))
        return x + self.down(functional.silu(self.up(x))), (k, v)


class Net(nn.Module):
    """Decoder with an optional past, which returns the past extended by the new tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids: Tensor, past: Past | None = None, angles: Tensor | None = None) -> tuple[Tensor, Past]:
        x, made = self.embed(ids), []
        for index, layer in enumerate(self.layers):
            x, held = layer(x, None if past is None else past[index], angles)
            made.append(held)
        return self.head(x), made


class Stacked(Net):
    """Decoder whose past is one tensor of all keys and values."""

    def forward(self, ids: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        logits, made = super().forward(ids, [(past[index, 0], past[index, 1]) for index in range(LAYERS)])
        return logits, torch.stack([torch.stack(held) for held in made])


class Cache:
    """Past as a user-defined object."""

    def __init__(self, cached: int, batch: int = 1) -> None:
        self.pairs: Past = past(cached, batch)


class Objects(Net):
    """Decoder that changes its past in place, and does not return it."""

    def forward(self, ids: Tensor, cache: Cache) -> Tensor:  # type: ignore[override]
        logits, cache.pairs = super().forward(ids, cache.pairs)
        return logits


class Inside(Net):
    """Decoder that neither takes nor returns a past."""

    def forward(self, ids: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(ids)[0]


class Forgetful(Net):
    """Decoder that takes a past, and returns none."""

    def forward(self, ids: Tensor, past: Past | None = None) -> Tensor:  # type: ignore[override]
        return super().forward(ids, past)[0]


def past(cached: int, batch: int = 1) -> Past:
    return [(torch.empty(batch, HEADS, cached, SIZE), torch.empty(batch, HEADS, cached, SIZE)) for _ in range(LAYERS)]


def ids(tokens: int = 1, batch: int = 1) -> Tensor:
    return torch.zeros(batch, tokens, dtype=torch.int64)


def example() -> tuple[nn.Module, object]:
    return Net(), (ids(), past(16))


def turned() -> tuple[nn.Module, object]:
    """Return an example whose total length equals the width of an angle, so that sizes are ambiguous."""
    return Net(), (ids(), past(SIZE - 1), torch.empty(1, 1, 1, SIZE))


def stacked() -> tuple[nn.Module, object]:
    return Stacked(), (ids(), torch.empty(LAYERS, 2, 1, HEADS, 16, SIZE))


def objects() -> tuple[nn.Module, object]:
    return Objects(), {"ids": ids(), "cache": Cache(16)}


def sized(batch: int = 1, tokens: int = 1, cached: int = 0) -> tuple[nn.Module, object]:
    return Net(), (ids(tokens, batch), past(cached, batch))


def image() -> tuple[nn.Module, object]:
    return nn.Conv2d(3, 4, 3), torch.empty(1, 3, 8, 8)
