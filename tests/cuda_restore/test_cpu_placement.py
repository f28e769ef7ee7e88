"""Runs of large pages, which the CPU device cuts into rows: every byte lands once and nothing else is touched."""

import numpy as np
import pytest

from countermark.cuda_restore.cpu_device import CpuDevice
from countermark.cuda_restore.device import STATUS_BYTES, ScatterStatus
from countermark.cuda_restore.spans import SpanTable

SPARE = 3


@pytest.mark.parametrize("pages", [2, 25, 500, 501])
@pytest.mark.parametrize("size", [1000, 2048, 6144, 16 * 1024, 4098])
@pytest.mark.parametrize("offset", [0, 38])
def test_pages_of_any_size_land_where_they_belong(pages: int, size: int, offset: int) -> None:
    draw = np.random.default_rng(1)
    blocks = draw.permutation(pages + SPARE)[:pages]
    table = SpanTable.of(offset + np.arange(pages) * size, blocks * size + 16, np.full(pages, size), alignment=1)
    with CpuDevice() as device:
        stream, status = device.new_stream(), device.allocate(STATUS_BYTES)
        destination = device.allocate(16 + (pages + SPARE) * size)
        staging = device.stage(offset + pages * size, pages)
        staging.payload[:] = draw.integers(0, 256, staging.payload.size, dtype=np.uint8)
        device.fill(destination, 0xA5, stream)
        device.fill(status, 0, stream)
        device.scatter(staging, table, destination, status, stream)
        wanted = np.full(destination.size, 0xA5, np.uint8)
        wanted[16:].reshape(-1, size)[blocks] = staging.payload[offset:].reshape(-1, size)
        assert (device.read(destination, 0, destination.size, stream) == wanted).all()
        assert ScatterStatus.of(device.read(status, 0, STATUS_BYTES, stream)) == ScatterStatus(pages * size, pages, 0, 0)
