import os
import signal

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before the kernels are imported: they run in Triton's interpreter
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell, and then in all that is started
    signal.signal(signal.SIGINT, signal.default_int_handler)


def let_the_interpreter_count():
    """Triton's interpreter holds a scalar as an array of one element, which NumPy 2.4 no longer takes for a number:
    `range(n)` in a kernel would be a TypeError."""
    try:
        from triton.runtime import interpreter
    except ImportError:
        return
    patch = getattr(interpreter, "_patch_lang_tensor", None)
    if patch is None:
        return

    def patch_with_item(tensor, *scope):
        patch(tensor, *scope)
        tensor.__index__ = lambda self: self.handle.data.item()

    interpreter._patch_lang_tensor = patch_with_item


if "TRITON_INTERPRET" in os.environ:
    let_the_interpreter_count()


def pytest_collection_modifyitems(items):
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device (marker gpu)"))
