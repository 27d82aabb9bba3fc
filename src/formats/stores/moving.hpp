// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include "formats/codec/store.hpp"
#include "ground/storage/objects/keyed_objects.hpp"

namespace tailrace::stores {

/// How a store takes the name of another one where storage has no rename: its objects are copied. A small
/// object beside the stores says how far that has come, so that every process finds a whole store under the
/// name, and whoever opens it next to write can end it. One process at a time moves a store, which has the
/// lock of its name. Blocks on storage.
class Moving {
 public:
  /// `begun_with` is the object whose presence shows that a store was begun.
  Moving(const storage::ObjectsAt& objects, const codec::StoreOpener& opener, std::string_view begun_with)
      : objects_(objects), opener_(opener), begun_with_(begun_with) {}

  /// Gives the store `from` the name `to`, and removes the store that has it. `from` is the name of the
  /// second pair of `to`.
  Status move(const std::string& from, const std::string& to);
  /// Ends what a process before this one has begun to move to `to`.
  Status end(const std::string& from, const std::string& to);
  /// Returns the place at which the store of this name lies. `path` is `from` or `to`.
  Result<std::string> place_of(const std::string& path, const std::string& from, const std::string& to);

 private:
  enum class State {
    none,
    copying,  // the store still lies at `from`; what lies at `to` is an old store, or a part of the new one
    copied    // it lies at `to`; the objects at `from` are removed
  };
  Result<State> state_of(const std::string& to);
  Status note(const std::string& to, State state);
  Status copy_all(const std::string& from, const std::string& to);
  Status remove_store(const std::string& path);

  const storage::ObjectsAt& objects_;
  const codec::StoreOpener& opener_;
  const std::string begun_with_;
};

}  // namespace tailrace::stores
