"""Features of CUDA C++, a small kernel each: what NVRTC compiles, what the host device runs, and what it refuses.

`python -m tests.cuda_features` writes docs/cuda-features.md.
"""
