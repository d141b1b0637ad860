"""Images of other sizes, sampled at positions and in regions; boxes in images. And functions of `jax.image`."""

from ._affine_grid import affine_grid, affine_grid_2d
from ._boxes import box_iou
from ._grid_sample import grid_sample, grid_sample_2d, grid_sample_backward
from ._interpolate import (
    interpolate,
    interpolate_area_2d,
    interpolate_backward,
    interpolate_bicubic_2d,
    interpolate_bilinear_2d,
    interpolate_linear_1d,
    interpolate_nearest_2d,
    interpolate_trilinear_3d,
)
from ._map_coordinates import map_coordinates
from ._nms import nms
from ._resize import resize, scale_and_translate
from ._roi_align import roi_align, roi_align_backward
from ._roi_pool import roi_pool, roi_pool_backward
from ._soft_nms import soft_nms

__all__ = [
    "affine_grid",
    "affine_grid_2d",
    "box_iou",
    "grid_sample",
    "grid_sample_2d",
    "grid_sample_backward",
    "interpolate",
    "interpolate_area_2d",
    "interpolate_backward",
    "interpolate_bicubic_2d",
    "interpolate_bilinear_2d",
    "interpolate_linear_1d",
    "interpolate_nearest_2d",
    "interpolate_trilinear_3d",
    "map_coordinates",
    "nms",
    "resize",
    "roi_align",
    "roi_align_backward",
    "roi_pool",
    "roi_pool_backward",
    "scale_and_translate",
    "soft_nms",
]
