"""Fourier and cosine transforms compared with NumPy's, SciPy's and PyTorch's, and what they refuse."""

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.fft
import sent
from by_torch import torch
from examples_of import close
from programs import normal

import baracuda_jax as bj

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
FROM_REAL, TO_REAL = ("rfft", "ihfft", "rfftn"), ("irfft", "hfft", "irfftn")
NORMS = (None, "backward", "ortho", "forward")


def _drawn(name, shape, dtype="complex128"):
    x = normal(shape)
    if name in FROM_REAL:
        return x.astype(jnp.finfo(dtype).dtype)
    return jax.lax.complex(x, normal(shape, seed=1)).astype(dtype)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 4, 5, 12])
@pytest.mark.parametrize("name", ONE)
def test_one_axis_is_numpys(name, n, norm):
    x = _drawn(name, (3, 5, 2))
    close(getattr(bj, name)(x, n, 1, norm), getattr(np.fft, name)(np.asarray(x), n, 1, norm), "complex128", scale=4)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize(
    "how",
    [
        {}, dict(axes=(1,)), dict(axes=(2, 0)), dict(axes=1, norm="ortho"), dict(s=(3, 5), norm="forward"),
        dict(s=(2, 3, 4, 5), axes=(0, 1, 3, 2)), dict(axes=(4, 3, 1, 0, 2)),
    ],
    ids=str,
)  # fmt: skip
def test_several_axes_are_numpys(name, how):
    x = np.asarray(_drawn(name, (2, 3, 4, 3, 2)))
    theirs = how | {key: (how[key],) for key in ("axes",) if isinstance(how.get(key), int)}
    theirs |= dict(axes=(-2, -1)) if "s" in how and "axes" not in how else {}
    close(getattr(bj, name)(x, **how), getattr(np.fft, name)(x, **theirs), "complex128", scale=8)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
@pytest.mark.parametrize("axes", [None, 0, (1, 2)])
def test_shifts_are_numpys(name, axes):
    x = np.arange(60).reshape(3, 4, 5)
    np.testing.assert_array_equal(getattr(bj, name)(x, axes), getattr(np.fft, name)(x, axes))
    np.testing.assert_array_equal(bj.ifftshift(bj.fftshift(x, axes), axes), x)


@pytest.mark.parametrize("name", (*ONE, *SEVERAL))
def test_gradients_are_torchs(name):
    """PyTorch's are the conjugates of JAX's."""
    x = _drawn(name, (3, 6))
    y, pull = jax.jit(lambda x: jax.vjp(getattr(bj, name), x))(x)
    dy = _drawn("rfft" if name in TO_REAL else "fft", y.shape)
    tx = torch.tensor(np.asarray(x)).requires_grad_()
    (want,) = torch.autograd.grad(getattr(torch.fft, name)(tx), tx, torch.tensor(np.conj(np.asarray(dy))))
    close(pull(dy)[0], np.conj(want.resolve_conj().numpy()), "complex128", scale=8)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ONE)
def test_dtypes(name, dtype):
    if name in FROM_REAL and dtype.startswith("complex"):
        pytest.skip("it takes real numbers")
    x = sent.asarray(normal((2, 6)), dtype)
    y = getattr(bj, name)(x)
    bits = 64 if dtype in ("float64", "complex128") else 32
    assert y.dtype == (f"float{bits}" if name in TO_REAL else f"complex{2 * bits}")
    wide = np.asarray(x).astype(np.complex128 if dtype.startswith("complex") else np.float64)
    close(y, getattr(np.fft, name)(wide), "float64" if bits == 64 else "float32", scale=2)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "idct"])
def test_cosines_are_scipys(name, type, norm):
    function, theirs = getattr(bj, name), getattr(scipy.fft, name)
    for n in (2, 3, 8, 9) if type == 1 else (1, 2, 3, 8, 9):
        x = np.asarray(normal((n, 3)))
        for own in (None, True, False):
            want = theirs(x, type, axis=0, norm=norm, orthogonalize=own)
            close(function(x, type, axis=0, norm=norm, orthogonalize=own), want, "float64", scale=4)
    close(function(x, type, 6, 0, norm), theirs(x, type, 6, 0, norm), "float64", scale=4)
    z = np.asarray(_drawn("fft", (2, 6)))
    close(function(z, type, norm=norm), theirs(z, type, norm=norm), "complex128", scale=4)


@pytest.mark.parametrize("type", [1, 2, 3, 4])
def test_an_orthogonal_transform_keeps_lengths_and_is_turned_back(type):
    x = normal((3, 7))
    y, pull = jax.vjp(lambda x: bj.dct(x, type, norm="ortho"), x)
    close((y**2).sum(1), (x**2).sum(1), "float64", scale=4)
    close(bj.idct(y, type, norm="ortho"), x, "float64", scale=4)
    close(pull(y)[0], x, "float64", scale=4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("type", [1, 2, 3, 4])
def test_cosines_of_many_elements(type, dtype):
    """Angles keep their digits; half precisions are rounded once."""
    x = normal((2, 4096), dtype)
    want = scipy.fft.dct(np.asarray(x).astype(np.float64), type, norm="ortho")
    y = bj.dct(x, type, norm="ortho")
    assert y.dtype == dtype
    close(y, want, dtype)


@pytest.mark.parametrize("name", [*ONE, *SEVERAL, "dct", "fftshift"])
def test_an_empty_batch(name):
    x = sent.zeros((0, 6)) if name not in SEVERAL else sent.zeros((0, 2, 6))
    how = dict(axes=(1, 2)) if name in SEVERAL else {}
    assert getattr(bj, name)(x, **how).shape[0] == 0


X = np.ones((2, 3))
BAD = [
    ("fft", TypeError, "x must have one of the dtypes .*, got int32", (X.astype(jnp.int32),), {}),
    ("rfft", TypeError, "x must have one of the dtypes .*, got complex128", (X + 0j,), {}),
    ("fft", ValueError, r"axis must be in \[-2, 1\] for x of shape \(2, 3\), got 2", (X,), {"axis": 2}),
    ("fft", ValueError, "n must be at least 1, got 0", (X, 0), {}),
    ("fft", TypeError, "n must be an integer, got 2.5", (X, 2.5), {}),
    ("fft", ValueError, r"x must have elements along axis 1, got shape \(2, 0\)", (X[:, :0],), {}),
    ("fft", ValueError, "norm must be one of None, 'backward', 'ortho', 'forward', got 'unit'", (X,), {"norm": "unit"}),
    ("irfft", ValueError, "n must be given where x has one element along axis 1, got None", (X[:, :1],), {}),
    ("fftn", ValueError, r"axes must name each axis once, got \(0, -2\)", (X,), {"axes": (0, -2)}),
    ("fftn", ValueError, r"s must have a length for each of 2 axes, got \(3,\)", (X, (3,)), {"axes": (0, 1)}),
    ("fftn", ValueError, r"axes must name one axis at least, got \(\)", (X,), {"axes": ()}),
    ("irfftn", ValueError, r"s\[1\] must be at least 1, got 0", (X, (3, 0)), {}),
    ("fftshift", ValueError, r"axes\[0\] must be in \[-2, 1\]", (X, 5), {}),
    ("dct", ValueError, "type must be one of 1, 2, 3, 4, got 5", (X, 5), {}),
    ("dct", ValueError, "n must be at least 2 for type 1, got 1", (X, 1, 1), {}),
    ("idct", TypeError, "orthogonalize must be True or False, got 1", (X,), {"orthogonalize": 1}),
    ("dct", ValueError, "implementation='native', but the op has no kernel; cufft computes it", (X,), {"implementation": "native"}),
]  # fmt: skip


@pytest.mark.parametrize("name, error, match, args, kwargs", BAD)
def test_what_is_refused(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(*args, **kwargs)


def test_the_derivative_of_a_cosine_transform_is_its_matrix():
    matrix = jax.jit(jax.jacobian(lambda x: bj.dct(x, 3)))(sent.zeros(5))
    close(matrix, scipy.fft.dct(np.eye(5), 3, axis=0), "float64", scale=4)
    x = normal((5,))
    want = by_torch.tensor(scipy.fft.dct(np.asarray(x), 3)).numpy()
    close(jax.jvp(lambda x: bj.dct(x, 3), (x,), (x,))[1], want, "float64", scale=4)
