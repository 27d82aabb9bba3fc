// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::storage {

/// A service that keeps objects under names and takes each object as a whole: what a new place of objects
/// implements (src/ground/README.md). WholeObjects makes stores of it, and ObjectFiles the small files beside
/// them. Names are tidy paths with the prefix of the place ("bucket://run/fc.zarr/zarr.json"); what stands
/// between two '/' is never empty. All calls are local, block until the service has answered, and may come
/// from several threads at once. An error names the object. Whoever reads an object whose put was answered
/// finds the new bytes; a put that failed may have been made all the same. The class tries calls again by
/// itself that the service refused for being too many ("slow down") or that a network lost: what it returns
/// is final for the caller, who tries again after Code::space alone (on_full=wait).
class ObjectService {
 public:
  struct Object {
    std::string name;
    std::span<const std::byte> bytes;
  };
  struct Whole {
    ByteVector bytes;
    std::string version;  // not empty; another one after each change of the object
  };

  virtual ~ObjectService() = default;
  /// Returns the size of the object, or nothing if there is none.
  virtual Result<std::optional<Bytes>> size_of(const std::string& name) = 0;
  /// Fills `data` from the object's byte `offset` on. Returns the number of bytes read, which is less than
  /// asked only at the end of the object, or nothing if there is no object.
  virtual Result<std::optional<Bytes>> read(const std::string& name, Bytes offset,
                                            std::span<std::byte> data) = 0;
  /// Returns the whole object, or nothing if there is none.
  virtual Result<std::optional<Whole>> get(const std::string& name) = 0;
  /// Puts the objects, in any order or side by side. Whoever looks finds each of them as before or as it is
  /// to be. Success: all of them are durable.
  virtual Status put(std::span<const Object> objects) = 0;
  /// Puts one object if the one of this name still has this version, or with "" if there is none. Returns
  /// the version that it has then, or nothing if it was not put. Of several callers with the same version one
  /// puts.
  virtual Result<std::optional<std::string>> put_if(const Object& object, const std::string& version) = 0;
  /// Copies an object, which exists. The service may do it by itself, so that no bytes come here.
  virtual Status copy(const std::string& from, const std::string& to);
  /// Removes the object. Success also if there is none.
  virtual Status remove(const std::string& name) = 0;
  /// Returns what stands behind `prefix`, up to the next '/', in the names of objects: sorted, each once, and
  /// at most the first `most`. `prefix` ends in '/'.
  virtual Result<std::vector<std::string>> list(const std::string& prefix, std::size_t most) = 0;
};

/// All names, for ObjectService::list().
inline constexpr std::size_t all_names = static_cast<std::size_t>(-1);

/// Returns what the names of objects in a directory begin with: "bucket://" -> "bucket://", "bucket://a" ->
/// "bucket://a/".
std::string names_below(const std::string& tidy);

}  // namespace tailrace::storage
