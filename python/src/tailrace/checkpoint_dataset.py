# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A checkpoint as an xarray Dataset."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray
from xarray.backends import BackendArray
from xarray.core import indexing

if TYPE_CHECKING:
    from .checkpoint import Checkpoint


class _Values(BackendArray):
    """The values of an item. Asking for any part reads the whole item."""

    def __init__(self, copy: Checkpoint, name: str) -> None:
        item = copy.item(name)
        self.copy, self.name, self.shape, self.dtype = copy, name, item.shape, item.dtype.newbyteorder("=")

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, lambda basic: np.asarray(self.copy[self.name][basic]))


def to_dataset(copy: Checkpoint) -> xarray.Dataset:
    """Returns a Dataset of all items. Each item has dimensions of its own, named after it, because a checkpoint does
    not say which dimensions are the same."""
    variables = {name: xarray.Variable([f"{name}_dim_{i}" for i in range(len(copy.item(name).shape))],
                                       indexing.LazilyIndexedArray(_Values(copy, name))) for name in copy}
    return xarray.Dataset(variables, attrs={"generation": copy.generation, "run": str(copy.run)})
