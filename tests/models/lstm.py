"""A text classifier: embedding, a two-layer bidirectional LSTM, mean over time."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from . import Made, class_loss, random_classes


class Classifier(nn.Module):
    """Input int64 tokens [batch, n], output logits [batch, classes]."""

    def __init__(self, vocab: int, d: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, d, padding_idx=0)
        self.lstm = nn.LSTM(d, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.lstm(self.tokens(ids))
        return self.head(states.mean(dim=1))


def make(seed: int, batch: int = 3, n: int = 7, vocab: int = 40, d: int = 12, hidden: int = 16, classes: int = 4) -> Made:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(vocab, (batch, n), generator=generator)
    return Classifier(vocab, d, hidden, classes), (ids,), class_loss(random_classes((batch,), classes, generator))
