// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ground/storage/objects/keyed_objects.hpp"

namespace tailrace::stores {

/// A store as one file.
class Store : public storage::File {
 public:
  /// Copies the first `size` bytes to a store of the same kind in `directory`, which this makes or empties.
  /// The copy is durable on return. Returns Code::corrupt if this store lacks steps before `size`.
  virtual Status copy_to(const std::string& directory, Bytes size) = 0;
  /// Returns Code::state if the directory holds anything that no stream has written.
  virtual Status check_own() = 0;
  /// Removes the directory with all that is in it.
  virtual Status remove() = 0;
};

/// Opens the store in a directory, or makes an empty store if the mode makes files.
using Opener =
    std::function<Result<std::unique_ptr<Store>>(const std::string& directory, storage::OpenMode mode)>;

/// A kind of store: a directory of objects that streams write like a file.
struct Kind {
  std::string_view name;        // as formats::Format::store has it
  std::string_view ending;      // of the names of stores of this kind
  std::string_view begun_with;  // the file whose presence shows that a stream has begun the store
  /// Returns what opens the stores whose objects are at these places. Null if this build lacks a library that
  /// the kind needs.
  Opener (*opener)(storage::ObjectsAt objects) = nullptr;
};

}  // namespace tailrace::stores
