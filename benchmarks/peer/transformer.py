"""Models that NeuSight was scored on, with the kernels of transformers' plain attention.

    joulemap compare benchmarks/peer/transformer.py:gpt2_large --batch 4 --precision fp32 --runtime eager

Sizes are those of the configurations in the source's scripts/asplos/data/DLmodel_configs. A factory returns the model
and one sequence of the measured length. BERT has no head in inference, and predicts masked words in training.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

Model = tuple[nn.Module, Tensor]


def gelu_new(x: Tensor) -> Tensor:
    """Return GELU in the approximation of GPT-2, which transformers writes as single operations."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu_new": gelu_new,
    "gelu": nn.functional.gelu,
    "relu": nn.functional.relu,
}


class Layer(nn.Module):
    """Attention with its scores in memory, then two GEMMs around an activation."""

    def __init__(self, width: int, heads: int, activation: str) -> None:
        super().__init__()
        self.heads = heads
        self.activation = activation
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        count = 1 if activation == "gelu_new" else 3
        self.parts = nn.ModuleList(nn.Linear(width, 3 * width // count) for _ in range(count))
        self.merge = nn.Linear(width, width)
        self.grow, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def _split(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        return x.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)

    def _attend(self, x: Tensor, mask: Tensor) -> Tensor:
        is_gpt = self.activation == "gelu_new"
        parts = [one(x) for one in self.parts]
        query, key, value = map(self._split, parts[0].chunk(3, -1) if is_gpt else parts)
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(query.shape[-1])
        scores = torch.where(mask > -1.0, scores, -1e9) if is_gpt else scores + mask
        found = torch.matmul(torch.softmax(scores, -1), value)
        out: Tensor = self.merge(found.transpose(1, 2).contiguous().flatten(2))
        return out

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the next states of the tokens."""
        act = ACTIVATIONS[self.activation]
        if self.activation == "gelu":  # BERT normalizes after the sum
            x = self.norms[0](x + self._attend(x, mask))
            out: Tensor = self.norms[1](x + self.shrink(act(self.grow(x))))
        else:
            x = x + self._attend(self.norms[0](x), mask)
            out = x + self.shrink(act(self.grow(self.norms[1](x))))
        return out


class Transformer(nn.Module):
    """Transformer: embeddings of words and positions, layers, and an optional output head over all words."""

    def __init__(
        self, layers: int, width: int, heads: int, tokens: int, words: int, activation: str, *, has_head: bool = True
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(tokens, width)
        self.layers = nn.ModuleList(Layer(width, heads, activation) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False) if has_head else None
        self.register_buffer("mask", torch.zeros(1, 1, tokens, tokens))

    def forward(self, ids: Tensor) -> Tensor:
        """Return the scores of all words for each token, or without a head its state."""
        x = self.words(ids) + self.places.weight
        for layer in self.layers:
            x = layer(x, self.mask)
        out: Tensor = self.norm(x)
        return out if self.head is None else torch.nn.functional.linear(out, self.head.weight)


def _make(
    layers: int, width: int, heads: int, tokens: int, words: int, activation: str, *, has_head: bool = True
) -> Model:
    module = Transformer(layers, width, heads, tokens, words, activation, has_head=has_head)
    return module, torch.zeros(1, tokens, dtype=torch.int64)


def bert_large() -> Model:
    return _make(24, 1024, 16, 512, 30522, "gelu", has_head=False)


def bert_large_words() -> Model:
    return _make(24, 1024, 16, 512, 30522, "gelu")


def gpt2_large() -> Model:
    return _make(36, 1280, 20, 1024, 50257, "gelu_new")


def gpt3_xl() -> Model:
    return _make(24, 3072, 24, 2048, 50257, "gelu_new")


def gpt3_27() -> Model:
    return _make(32, 2560, 32, 2048, 50257, "gelu_new")


def opt_13() -> Model:
    return _make(24, 2048, 32, 2048, 50272, "relu")
