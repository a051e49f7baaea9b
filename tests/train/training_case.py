"""Training steps in torch and as joulemap counts them."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from joulemap.physics.record.workload import NO_KEY, Operator, Workload
from joulemap.plan.workload import trace_user_module
from joulemap.wing.train.training.recipe import Recipe
from joulemap.wing.train.training.step import describe_training


def step_of(module: torch.nn.Module, inputs: torch.Tensor, **recipe: Any) -> Workload:
    traced = trace_user_module(module, inputs).traced
    assert traced is not None
    return describe_training(traced, Recipe(**recipe), "train(net)", NO_KEY)


def is_again(one: Operator) -> bool:
    return one.name.endswith((".again", "_again"))


def backward_macs(workload: Workload) -> int:
    return sum(one.mac_count for one in workload.operators if ".backward." in one.name and not is_again(one))


def train_in_torch(module: torch.nn.Module, inputs: torch.Tensor) -> tuple[int, int, int]:
    """Return MACs of the forward pass, of gradients, and the bytes that PyTorch keeps for them."""
    module.train()
    weights = {one.untyped_storage()._cdata for one in (*module.parameters(), *module.buffers())}
    storages: dict[int, Any] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        storages[storage._cdata] = storage
        return tensor

    # the counter knows the attention of GPUs alone
    kernels = {
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: lambda *shapes, **_: sdpa_flop_count(*shapes[:3]),
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: (
            lambda *shapes, **_: sdpa_backward_flop_count(*shapes[:4])
        ),
    }
    with FlopCounterMode(display=False, custom_mapping=kernels) as counter:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            logits = module(inputs)
            targets = torch.zeros(len(logits), dtype=torch.long, device=inputs.device)
            loss = torch.nn.functional.cross_entropy(logits, targets)
        forward = counter.get_total_flops()
        kept = sum(one.nbytes() for key, one in storages.items() if key not in weights)
        loss.backward()
    return forward // 2, (counter.get_total_flops() - forward) // 2, kept
