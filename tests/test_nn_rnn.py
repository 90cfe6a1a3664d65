"""Recurrent layers and cells, forward and backward."""

import pytest
import torch
from nn_compare import agree
from torch import nn

import torchtpu  # noqa: F401

LAYERS = [nn.LSTM, nn.GRU, nn.RNN]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}])
def test_layers(layer, options):
    torch.manual_seed(0)
    agree(layer(5, 6, **options), torch.randn(4, 3, 5))


@pytest.mark.parametrize("layer", LAYERS)
def test_packed(layer):
    torch.manual_seed(0)
    module = layer(5, 6, bidirectional=True)

    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x):
            packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 3, 1]))
            return nn.utils.rnn.pad_packed_sequence(self.inner(packed)[0])[0]

    agree(Packed(), torch.randn(4, 3, 5))


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(cell):
    torch.manual_seed(0)
    agree(cell(5, 6), torch.randn(3, 5))
