"""PyTorch's samples of interpolation and of grids."""

from onnx_adapters import NotApplicable

import baracuda_jax as bj


def _images(x):
    if x.dtype.kind not in "fV":
        raise NotApplicable("floats alone")
    if 0 in x.shape[2:]:
        raise NotApplicable("spatial sizes of at least 1")
    return x


def _interpolate(
    x, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False
):
    how = dict(recompute_scale_factor=recompute_scale_factor, antialias=antialias)
    return bj.interpolate(_images(x), size, scale_factor, mode, align_corners, **how)


def _of_mode(mode):
    def fun(x, *args, **kwargs):
        assert mode == kwargs.get("mode", args[2] if len(args) > 2 else "nearest")
        return _interpolate(x, *args, **kwargs)

    return fun


nn_functional_interpolate_nearest = _of_mode("nearest")
nn_functional_interpolate_nearest_exact = _of_mode("nearest-exact")
nn_functional_interpolate_linear = _of_mode("linear")
nn_functional_interpolate_bilinear = _of_mode("bilinear")
nn_functional_interpolate_bicubic = _of_mode("bicubic")
nn_functional_interpolate_trilinear = _of_mode("trilinear")
nn_functional_interpolate_area = _of_mode("area")


def nn_functional_upsample_bilinear(x, size=None, scale_factor=None):
    return bj.interpolate_bilinear_2d(_images(x), size, scale_factor, True)


def nn_functional_upsample_nearest(x, size=None, scale_factor=None):
    return bj.interpolate(_images(x), size, scale_factor)


def nn_functional_grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    return bj.grid_sample(_images(x), grid, mode, padding_mode, bool(align_corners))


def grid_sampler_2d(x, grid, mode, padding, align_corners):
    names = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return bj.grid_sample(_images(x), grid, names[0][mode], names[1][padding], align_corners)


grid_sampler_3d = grid_sampler_2d
