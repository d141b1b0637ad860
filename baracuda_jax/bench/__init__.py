"""`baracuda-jax bench`: our kernels' times beside the floor, XLA's programs and PyTorch's."""
