"""The same computation on the CPU and on the device: results and gradients must agree."""

import copy

import torch
from torch.utils._pytree import tree_flatten, tree_map


def to_device(value, device="tpu"):
    def move(x):
        if not isinstance(x, torch.Tensor):
            return x
        return x.detach().to(device).requires_grad_(x.requires_grad)

    return tree_map(move, value)


def tensors(value):
    return [x for x in tree_flatten(value)[0] if isinstance(x, torch.Tensor)]


def agree(function, *args, rtol=1e-4, atol=1e-5, grad=True, **kwargs):
    """Runs `function` (or a module) both ways; returns the CPU's result."""
    other = copy.deepcopy(function).to("tpu") if isinstance(function, torch.nn.Module) else function
    if grad:
        args = tree_map(
            lambda x: (
                x.detach().requires_grad_()
                if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())
                else x
            ),
            args,
        )
    moved = to_device(args)
    wanted, given = function(*args, **kwargs), other(*moved, **kwargs)
    for a, b in zip(tensors(wanted), tensors(given), strict=True):
        assert b.device.type == "tpu"
        torch.testing.assert_close(
            b.cpu(), a, rtol=rtol, atol=atol, check_stride=False, equal_nan=True
        )
    roots = [(a, b) for a, b in zip(tensors(wanted), tensors(given)) if a.requires_grad]
    if grad and roots:
        seeds = [torch.randn(a.shape, dtype=a.dtype) for a, _ in roots]
        torch.autograd.backward([a for a, _ in roots], seeds)
        torch.autograd.backward([b for _, b in roots], [s.to("tpu") for s in seeds])
        pairs = list(zip(tensors(args), tensors(moved)))
        if isinstance(function, torch.nn.Module):
            pairs += list(zip(function.parameters(), other.parameters()))
            for a, b in zip(function.buffers(), other.buffers()):
                torch.testing.assert_close(b.cpu(), a, rtol=rtol, atol=atol)
        for a, b in pairs:
            assert (a.grad is None) == (b.grad is None)
            if a.grad is not None:
                torch.testing.assert_close(b.grad.cpu(), a.grad, rtol=10 * rtol, atol=10 * atol)
    return wanted
