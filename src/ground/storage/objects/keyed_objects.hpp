// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// An object that is read. Its bytes may be those of the moment at which it was found.
class FoundObject {
 public:
  virtual ~FoundObject() = default;
  virtual Result<Bytes> size() = 0;
  /// Fills `data` from `offset` on. Returns the number of bytes read, which is less than asked only at the
  /// end of the object.
  virtual Result<Bytes> read(std::span<std::byte> data, Bytes offset) = 0;
};

/// The objects of one place, by their keys: all that a store asks of storage. A place is a directory of
/// files (FileObjects), or what names of a service begin with (WholeObjects): its name says which
/// (places.hpp). A key has
/// one or more names with '/' between them; the names before the last one are the key's group. All calls are
/// local and block on storage. Several threads may find, list and read at once; all else is for one thread.
/// What is written, put, copied or removed is durable only after sync().
class KeyedObjects {
 public:
  /// A whole object.
  struct Text {
    std::string key, text;
  };
  /// The number of objects that are handed to put() together, if there are very many.
  static constexpr std::size_t most_at_once = 64;

  virtual ~KeyedObjects() = default;
  /// Returns the place, or an object of it, as texts of errors name them.
  [[nodiscard]] virtual const std::string& place() const = 0;
  [[nodiscard]] std::string name_of(std::string_view key) const {
    return place() + (place().ends_with('/') ? "" : "/") + std::string(key);
  }

  /// True if the place is there, also without objects, if the kind can tell. Otherwise true if it has
  /// objects.
  virtual Result<bool> is_made() = 0;
  /// Makes the place. Fails with ENOENT if what should be around it is missing.
  virtual Status make() = 0;
  /// Removes the place, which has no objects and no groups.
  virtual Status unmake() = 0;
  /// Makes a group. Returns false if there is one whose objects have the same keys.
  virtual Result<bool> make_group(const std::string& group) = 0;
  /// Removes the group, if it is there, and all its objects.
  virtual Status remove_group(const std::string& group) = 0;
  /// True if the group's objects may be those of another place, because a link leads there.
  virtual Result<bool> leads_elsewhere(const std::string& /*group*/) { return false; }

  /// Returns the object, or null if there is none.
  virtual Result<std::unique_ptr<FoundObject>> find(const std::string& key) = 0;
  virtual Result<bool> exists(const std::string& key) = 0;
  /// Returns the names of the objects and groups that lie in a group, or with "" in the place, sorted. Fails
  /// with ENOENT if there is no such group, and with ENOTDIR if an object has its name.
  virtual Result<std::vector<std::string>> list(const std::string& group) = 0;
  /// An interrupted put() may leave unfinished objects, which list() shows. Returns the name that an object
  /// of this name would have got, which is the name itself if the object is finished.
  [[nodiscard]] virtual std::string_view finished_name(std::string_view name) const { return name; }

  /// Makes these objects anew. Whoever looks finds each of them as before or as it is to be. Their bytes are
  /// durable on return.
  virtual Status put(std::span<const Text> objects) = 0;
  /// Writes a part of an object, which is made if it is missing. An object shorter than `begin` gets these
  /// bytes before. Other users may write other parts at the same time, in files from any process, and else
  /// from this process.
  virtual Status write(const std::string& key, Bytes offset, Parts parts,
                       std::span<const std::byte> begin = {}) = 0;
  /// Makes the object from the first `size` bytes of the object with the same key in another place of the
  /// same storage.
  virtual Status copy_from(const std::string& place, const std::string& key, Bytes size) = 0;
  virtual Status remove(const std::string& key) = 0;
  /// Removes the object if it is there, and what an interrupted put() has left of it.
  virtual Status remove_if_there(const std::string& key) = 0;

  /// Makes durable which keys there are.
  virtual Status sync_keys() = 0;
  /// Makes everything durable. After a failure nobody knows what is durable: files fail in every later call,
  /// and a service gets again what it may not have.
  virtual Status sync() = 0;
  /// Gives up the bytes written since the last sync(), which need not become durable. The caller removes the
  /// objects that have them.
  virtual void give_up_writes() = 0;

  /// Fills `data` from the object's byte `offset` on. Returns the number of bytes that are there, or nothing
  /// if there is no object.
  Result<std::optional<Bytes>> read(const std::string& key, Bytes offset, std::span<std::byte> data);
  /// Returns the size of an object, or nothing if there is none.
  Result<std::optional<Bytes>> size_of(const std::string& key);
  /// Returns all bytes of an object, or nothing if there is none. Code::corrupt if it has more than `most`.
  Result<std::optional<std::string>> text_of(const std::string& key, Bytes most);
};

/// Returns the objects of a place.
using ObjectsAt = std::function<std::unique_ptr<KeyedObjects>(std::string place)>;

}  // namespace tailrace::storage
