"""State-space models: layers whose memory of a sequence is a state of fixed size.

Data flow: a causal convolution sees a few elements before each one, a selective scan all of them through its state. Both
begin with the state that another call has returned, and start anew where a segment begins. Patterns: stencil, state_scan.
"""

from ._causal_conv1d import causal_conv1d, causal_conv1d_backward
from ._causal_conv1d_update import causal_conv1d_update
from ._selective_scan import selective_scan, selective_scan_backward
from ._selective_state_update import selective_state_update
from ._ssd_chunk_scan import ssd_chunk_scan, ssd_chunk_scan_backward

__all__ = [
    "causal_conv1d",
    "causal_conv1d_backward",
    "causal_conv1d_update",
    "selective_scan",
    "selective_scan_backward",
    "selective_state_update",
    "ssd_chunk_scan",
    "ssd_chunk_scan_backward",
]
