"""Everything that takes part, by name."""

from typing import Final

from benchmarks.restore.contender import Contender
from benchmarks.restore.costs import open_costs, open_disk
from benchmarks.restore.ours import open_ours
from benchmarks.restore.peers import (
    numpy_hashed,
    numpy_hashed_in_threads,
    numpy_read,
    open_fastsafetensors,
    open_reused,
    open_runai,
    open_safetensors,
    plain,
)

COSTS: Final = Contender("costs", open_costs, authenticates=True, places=True)
DISK: Final = Contender("disk", open_disk)
OURS: Final = Contender("countermark", open_ours, authenticates=True, places=True)
NAIVE: Final = Contender("np.fromfile + hashlib", plain(numpy_hashed), authenticates=True)

ROWS: Final = (
    OURS,
    NAIVE,
    Contender("the same, 4 threads", plain(numpy_hashed_in_threads), authenticates=True),
    Contender("readinto kept memory", open_reused, authenticates=True),
    Contender("np.fromfile", plain(numpy_read)),
    Contender("safetensors.numpy", open_safetensors),
    Contender("runai-model-streamer", open_runai),
    Contender("fastsafetensors nogds", open_fastsafetensors),
)

BY_NAME: Final = {one.name: one for one in (COSTS, DISK, *ROWS)}
