"""The device, its tensors, views, in-place and out= forms, and PyTorch's own errors."""

import copy
import io
import pickle
import warnings

import pytest
import torch


def test_first_program(device):
    x = torch.ones(3, device=device)
    y = x + 1
    assert y.device == torch.device("tpu", 0)
    assert y.tolist() == [2, 2, 2]
    assert repr(y) == "tensor([2., 2., 2.], device='tpu:0')"


def test_device_module():
    assert torch.tpu.is_available() and torch.tpu.device_count() >= 1
    assert torch.accelerator.current_accelerator().type == "tpu"
    with torch.tpu.device(0):
        assert torch.tpu.current_device() == 0
    with torch.device("tpu"):
        assert torch.ones(2).is_tpu
    assert torch.randn(2).tpu().is_tpu
    properties = torch.tpu.get_device_properties(0)
    assert properties.name == torch.tpu.get_device_name() and properties.total_memory > 0


def test_views_share_memory(device):
    x = torch.arange(12, device=device).view(3, 4)
    x.t()[0, 0] = 100
    assert x[0, 0].item() == 100
    x[1:, ::2].add_(1)
    assert x.cpu().tolist() == [[100, 1, 2, 3], [5, 5, 7, 7], [9, 9, 11, 11]]
    assert x.unfold(0, 2, 1).cpu().equal(x.cpu().unfold(0, 2, 1))


def test_lazy_conj_and_neg(device):
    c = torch.randn(4, dtype=torch.complex64)
    d = c.to(device)
    assert torch.equal(d.conj().cpu(), c.conj())
    assert torch.equal(d.conj().imag.cpu(), c.conj().imag)
    assert torch.equal(torch.view_as_real(d).cpu(), torch.view_as_real(c))


def test_out_is_resized_with_the_warning(device):
    a = torch.randn(2, 3, device=device)
    out = torch.empty(0, device=device)
    assert torch.add(a, 1, out=out) is out and out.shape == (2, 3)
    out = torch.empty(5, device=device)
    with pytest.warns(UserWarning, match="resized"):
        torch.add(a, 1, out=out)
    assert torch.equal(out.cpu(), a.cpu() + 1)


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (
            lambda d: torch.ones(3, device=d) + torch.ones(4, device=d),
            RuntimeError,
            "must match the size",
        ),
        (lambda d: torch.ones(3, device=d) + torch.ones(3), RuntimeError, "on the same device"),
        (
            lambda d: torch.ones(3, dtype=torch.int32, device=d).add_(1.5),
            RuntimeError,
            "can't be cast",
        ),
        (lambda d: torch.ones(3, device=d).sum(5), IndexError, "Dimension out of range"),
        (
            lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
            RuntimeError,
            "mat1 and mat2",
        ),
        (
            lambda d: torch.ones(1, device=d).expand(4).add_(1),
            RuntimeError,
            "single memory location",
        ),
        (lambda d: torch.empty(3, device="tpu:99"), RuntimeError, "ordinal"),
    ],
)
def test_errors_are_pytorchs(device, call, kind, text):
    with pytest.raises(kind, match=text):
        call(device)


def test_overlapping_in_place_write_is_refused(device):
    x = torch.arange(5.0, device=device)
    with pytest.raises(RuntimeError, match="memory"):
        x[1:].add_(x[:-1])


def test_save_load_pickle_deepcopy(device):
    module = torch.nn.Linear(3, 4).to(device)
    buffer = io.BytesIO()
    torch.save(module.state_dict(), buffer)
    buffer.seek(0)
    state = torch.load(buffer)
    assert state["weight"].is_tpu and torch.equal(
        state["weight"].cpu(), module.weight.detach().cpu()
    )
    buffer.seek(0)
    assert torch.load(buffer, map_location="cpu")["weight"].is_cpu
    assert torch.equal(pickle.loads(pickle.dumps(module.weight)).cpu(), module.weight.cpu())
    other = copy.deepcopy(module)
    assert other.weight.data_ptr() != module.weight.data_ptr()
    assert torch.equal(other.weight.cpu(), module.weight.cpu())


def test_to_keeps_parameters_identity(device):
    module = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 4), "b": torch.nn.Linear(4, 4)})
    module["b"].weight = module["a"].weight
    before = module["a"].weight
    module.to(device)
    assert module["a"].weight is before and module["b"].weight is before and before.is_tpu


def test_storages(device):
    x, y = torch.zeros(4, device=device), torch.ones(2, device=device)
    x.data = y
    assert x.tolist() == [1, 1]
    z = torch.empty(0, device=device)
    z.set_(y.untyped_storage(), 0, (2,))
    z.fill_(7)
    assert y.tolist() == [7, 7]
    y.resize_(4)
    assert y.tolist()[:2] == [7, 7]
    storage = torch.UntypedStorage(16, device=device)
    storage.resize_(32)
    assert storage.nbytes() == 32 and storage.device.type == "tpu"


def test_data_ptr_names_a_storage(device):
    x = torch.ones(4, device=device)
    assert x.data_ptr() != 0 and x[1:].data_ptr() == x.data_ptr() + 4
    assert torch.zeros(0, device=device).data_ptr() == 0


def test_indices_may_be_on_the_cpu(device):
    x = torch.randn(3, 4, device=device)
    index = torch.tensor([0, 2])
    assert torch.equal(x[index].cpu(), x.cpu()[index])
    x[index] = 0
    assert x.cpu()[2].sum() == 0


def test_cpu_scalars_mix(device):
    x = torch.arange(3, device=device)
    assert (x * torch.tensor(2.5)).tolist() == [0, 2.5, 5]
    assert (x * torch.tensor(2.5)).dtype == torch.float32


def test_pinned_memory(device):
    t = torch.randn(3).pin_memory()
    assert t.is_pinned() and t[1:].is_pinned() and not torch.randn(3).is_pinned()
    assert torch.equal(t.to(device, non_blocking=True).cpu(), t)
    data = torch.utils.data.TensorDataset(torch.randn(8, 2))
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
    assert all(batch[0].is_pinned() for batch in loader)


def test_fallback_is_counted_and_can_be_refused(device):
    torch.tpu.fallback_stats(reset=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.linalg.eigvals(torch.eye(3, device=device))
    counts = torch.tpu.fallback_stats(reset=True)
    if not counts:
        pytest.skip("this op has a lowering by now")
    torch.tpu.set_fallback("error")
    try:
        with pytest.raises(NotImplementedError, match="TORCHTPU_FALLBACK"):
            torch.linalg.eigvals(torch.eye(3, device=device))
    finally:
        torch.tpu.set_fallback("warn")
