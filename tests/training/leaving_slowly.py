"""`python -m sentence_state` where gloo's threads are still busy when the process ends: see parting_often.py."""

import runpy

import torch.distributed as dist

from .parting_often import slow_threads

if __name__ == "__main__":
    dist.init_process_group = slow_threads(dist.init_process_group)
    runpy.run_module("sentence_state", run_name="__main__", alter_sys=True)
