"""PyTorch's OpInfo samples by the ops of this package: a file a family, a function an OpInfo.

A function is named as the OpInfo, with `_` for what a name can't hold: `nn_functional_mse_loss`; one of several variants may be named
after it: `nn_functional_interpolate_area`. It takes a sample's arguments, arrays
for tensors and names for dtypes, and gives what PyTorch gives. It raises `onnx_adapters.NotApplicable`, with the reason, for what the
op does not offer."""
