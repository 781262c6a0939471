"""Section 3.1, 3.2 and the baselines of Table 3: (x, lengths) -> Encoding."""

from collections.abc import Callable
from functools import partial

from .bilstm import LSTM, BiLSTM
from .cnn import CNN
from .drop_in import DropInLSTM
from .encoding import Encoder, Encoding
from .sentence_state_lstm import SentenceStateLSTM, Trace
from .transformer import Transformer

# The names of the paper's tables; each takes (input_size, hidden_size) and the options of its class.
ENCODERS: dict[str, Callable[..., Encoder]] = {
    "S-LSTM": SentenceStateLSTM,
    "LSTM": LSTM,
    "BiLSTM": BiLSTM,
    **{f"{layers} stacked BiLSTM": partial(BiLSTM, num_layers=layers) for layers in (2, 3, 4)},
    "CNN": CNN,
    **{f"{layers} stacked CNN": partial(CNN, num_layers=layers) for layers in (2, 3, 4)},
    **{f"Transformer (N={layers})": partial(Transformer, num_layers=layers) for layers in (6, 8, 10)},
}

__all__ = [
    "CNN",
    "ENCODERS",
    "LSTM",
    "BiLSTM",
    "DropInLSTM",
    "Encoder",
    "Encoding",
    "SentenceStateLSTM",
    "Trace",
    "Transformer",
]
