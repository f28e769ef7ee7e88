"""NVIDIA's bindings behind a small door: loaded when first asked for, every failed call a `DriverError` that names it."""

import importlib
from types import ModuleType
from typing import SupportsInt

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError
from countermark.cuda_restore.device import DriverError

_INSTALL = "install countermark with its extra: pip install 'countermark[cuda]'"


class CudaCalls:
    """The functions of one module of cuda-bindings, `driver` or `nvrtc`.

    They return a status first and then their results. `CannotTellError` (exit 4) when the package or its library is missing.
    """

    def __init__(self, module: str) -> None:
        try:
            self._module: ModuleType = importlib.import_module(f"cuda.bindings.{module}")
        except ImportError as error:
            raise CannotTellError(Code.UNSUPPORTED, f"the package cuda-bindings cannot be imported ({error})", fix=_INSTALL) from None

    def call(self, name: str, *arguments: object) -> tuple[object, ...]:
        """The results of a call; a `DriverError` if its status is not zero."""
        try:
            status, *results = getattr(self._module, name)(*arguments)
        except RuntimeError as error:  # cuda.pathfinder: the shared library behind the bindings was not found
            raise CannotTellError(Code.UNSUPPORTED, f"{name}: {error}", fix=_INSTALL) from None
        if int(status) != 0:
            raise DriverError(name, int(status), getattr(status, "name", "unknown status"))
        return tuple(results)

    def constant(self, path: str) -> object:
        """An enumerator such as `CUevent_flags.CU_EVENT_DISABLE_TIMING`."""
        enumeration, _, member = path.partition(".")
        return getattr(getattr(self._module, enumeration), member)


def as_handle(result: object) -> int:
    """A result as a number: the bindings' handle classes convert to the pointer that they hold."""
    if not isinstance(result, SupportsInt):
        raise DriverError("cuda-bindings", 0, f"a {type(result).__name__} is not a handle")
    return int(result)
