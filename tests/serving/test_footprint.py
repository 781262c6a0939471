import os

import pytest

from sentence_state.serving.footprint import KERNELS, bound_memory


@pytest.mark.parametrize(("given", "expected"), [(None, KERNELS), ("7", "7")])
def test_the_environment_comes_first(monkeypatch, given, expected):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "8")  # leaves the heaps of this process alone
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", given or "")
    if given is None:
        monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    bound_memory()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == expected
