// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ground/storage/objects/keyed_objects.hpp"

namespace tailrace::codec {

/// A store as one file.
class Store : public storage::File {
 public:
  /// Copies the first `size` bytes to a store of the same format in `directory`, which this makes or empties.
  /// The copy is durable on return. Returns Code::corrupt if this store lacks steps before `size`.
  virtual Status copy_to(const std::string& directory, Bytes size) = 0;
  /// Returns Code::state if the directory holds anything that no stream has written.
  virtual Status check_own() = 0;
  /// Removes the directory with all that is in it.
  virtual Status remove() = 0;
};

/// Opens the store in a directory, or makes an empty store if the mode makes files.
using StoreOpener =
    std::function<Result<std::unique_ptr<Store>>(const std::string& directory, storage::OpenMode mode)>;

/// How streams write a directory of objects like a file: what a format has whose "files" are stores.
struct StoreKind {
  std::string_view begun_with;  // the key of the object whose presence shows that a stream has begun a store
  /// Returns what opens the stores whose objects are at these places. Null if this build lacks a library that
  /// the format needs.
  StoreOpener (*opener)(storage::ObjectsAt objects) = nullptr;
};

}  // namespace tailrace::codec
