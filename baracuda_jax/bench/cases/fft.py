"""Transforms of rows, and of images."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import MATRICES, Benchmark, normal


def _complex(*shape):
    return lambda draws: (jax.lax.complex(draws.normal(shape), draws.normal(shape)),)


def _torch(name):
    return lambda torch, x: getattr(torch.fft, name)(x)


def _benchmark(name, rows, columns, plain, torch=None, is_complex=False):
    function = lambda x, implementation: getattr(baracuda_jax, name)(x, implementation=implementation)
    draw = (_complex if is_complex else normal)(rows, columns)
    return Benchmark(name, f"[{rows}, {columns}]", "float32", draw, function, plain, torch)


def benchmarks(size):
    rows, columns = MATRICES[size]
    for name in ("fft", "ifft", "irfft", "hfft", "fftn", "ifftn", "irfftn"):
        yield _benchmark(name, rows, columns, getattr(jnp.fft, name), _torch(name), is_complex=True)
    for name in ("rfft", "ihfft", "rfftn", "fftshift", "ifftshift"):
        yield _benchmark(name, rows, columns, getattr(jnp.fft, name), _torch(name))
    for name in ("dct", "idct"):
        yield _benchmark(name, rows, columns, getattr(jax.scipy.fft, name))
