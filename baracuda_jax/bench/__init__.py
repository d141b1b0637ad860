"""`baracuda-jax bench`: times of kernels compared with the floor, XLA's programs and PyTorch's."""
