"""Nodes of a saved program that run each operator, found by a trace in which every node is a module.

node ─► the same call in a module of its own ─► traced: the module path of an operator names its node
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch

from joulemap.construct.model import build_request
from joulemap.construct.source import ModelRequest
from joulemap.system.errors import ModelError
from joulemap.system.record import frozen
from joulemap.trace.guest import hosting
from joulemap.trace.limit import limited_time
from joulemap.trace.module import trace_module

PREFIX: Final = "joulemap_node_"
"""Prefix of the names of modules made from nodes; no module of a program has it."""


@frozen
class ProgramNode:
    """Node of a saved program that runs an operator."""

    name: str
    """Name of the node in torch and in graph viewers."""
    module_path: str
    """Path of the module that made the call when the program was saved; empty for the model itself."""


class _Call(torch.nn.Module):
    """Module that runs the call of one node."""

    def __init__(self, target: Any) -> None:
        super().__init__()
        self.target = target

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the node."""
        return self.target(*args, **kwargs)


def find_nodes(request: ModelRequest) -> tuple[ProgramNode, ...]:
    """Return the node that runs each operator of a saved program, in the order of the workload's operators.

    Raises ModelError if the program cannot be traced.
    """
    with hosting(request.model), limited_time(request.model):
        built = build_request(request)
        nodes = _split(built.module, request)
        workload = trace_module(
            built.module, built.positional, built.named, key=request.key, model=request.model, batch=built.batch
        )
    return tuple(nodes[operator.module_path] for operator in workload.operators)


def _split(module: torch.nn.Module, request: ModelRequest) -> dict[str, ProgramNode]:
    """Replace each call in a program's graph by a call of a new module; return module name -> node."""
    if not isinstance(module, torch.fx.GraphModule):
        raise ModelError(f"{request.model} is not a program of nodes")
    nodes: dict[str, ProgramNode] = {}
    for node in module.graph.nodes:
        if node.op == "call_function":
            name = f"{PREFIX}{len(nodes)}"
            nodes[name] = ProgramNode(node.name, _find_path(node.meta.get("nn_module_stack")))
            module.add_submodule(name, _Call(node.target))
            node.op, node.target = "call_module", name
    module.recompile()
    return nodes


def _find_path(stack: Mapping[str, tuple[str, object]] | None) -> str:
    """Return the path of the innermost module on a node's module stack; empty without a stack."""
    return [*stack.values()][-1][0] if stack else ""
