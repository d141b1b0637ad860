"""`baracuda-jax bench`: times of kernels compared with the bandwidth bound, XLA's programs and PyTorch's."""
