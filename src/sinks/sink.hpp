// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "storage/target.hpp"

namespace tailrace::sinks {

// A sink takes data after assembly. The three kinds differ in who decides where bytes lie, and so in what a
// commit is:
//   ByteSink       we do, by offset; committed when it is synced and the stream's index record is durable
//   ObjectSink     a key does; each object is replaced atomically, committed by its metadata, last
//   ContainerSink  a format's library does; committed when its file gets its final name

/// Bytes at offsets: raw, GRIB, Fortran records, classic NetCDF written by us. An open file is a byte sink.
using ByteSink = storage::File;

/// Objects under keys like "t/c/0/1": Zarr. Thread-safe; a key has one writer at a time. No key is the
/// directory of another: beside "t/c" there can be no "t".
class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  /// Replaces one object. A reader sees the old bytes or all of the new ones. The object is durable with the
  /// next commit.
  virtual Status put(const std::string& key, std::span<const std::byte> bytes) = 0;
  /// Keeps back an object that makes others visible. commit() puts these objects in the order of the calls.
  virtual Status put_metadata(const std::string& key, std::span<const std::byte> bytes) = 0;
  /// Makes every put durable, then puts the metadata and makes it durable. If any put since the last commit
  /// failed, commit() returns the first failure, drops the metadata kept back and leaves the old metadata as
  /// it was.
  virtual Status commit() = 0;
  /// Returns the object's bytes, or ENOENT if there is none.
  virtual Result<ByteVector> get(const std::string& key) = 0;
  /// Returns all keys, sorted.
  virtual Result<std::vector<std::string>> keys() = 0;
};

std::unique_ptr<ObjectSink> memory_objects();
/// Keeps objects as files below `root`: temporary name, fsync, rename, directory fsync.
std::unique_ptr<ObjectSink> target_objects(std::shared_ptr<storage::Target> target, std::string root);

/// A filter of a container's variable, by the name and parameters that the format's library knows.
struct Filter {
  std::string name;
  std::vector<std::int64_t> parameters;
  friend bool operator==(const Filter&, const Filter&) = default;
};
using Filters = std::vector<Filter>;

/// The first extent of a variable that grows as it is written to.
inline constexpr Index unlimited = -1;

struct Variable {
  std::string name;
  ElementType type = ElementType::f64;
  std::vector<Index> shape;  // slowest dimension first; the first may be `unlimited`
};

/// A box of a variable: `count` elements of each dimension from `start` on.
struct Hyperslab {
  std::vector<Index> start, count;
};

/// Contiguous elements in C order, of a type that is known only at run time.
struct TypedView {
  ElementType type = ElementType::byte;
  std::span<const std::byte> bytes;
};

/// A file whose bytes are laid out by a library: NetCDF-4, HDF5. One thread at a time, one owner.
class ContainerSink {
 public:
  virtual ~ContainerSink() = default;
  /// Adds a variable and returns its number, counted from 0. Call it before the first apply(): many formats
  /// fix their header then.
  virtual Result<int> define(const Variable& variable) = 0;
  /// Writes the box. The first apply() of a variable fixes its filters. Other filters later are
  /// Code::argument, and a filter that the library lacks is Code::unsupported. Elements never written read as
  /// zero.
  virtual Status apply(int variable, const Hyperslab& box, TypedView values, const Filters& filters) = 0;
  /// Makes the file durable and gives it its final name. Afterwards every call is Code::state. Without
  /// commit() nothing becomes visible, and an older file of that name stays.
  virtual Status commit() = 0;
};

/// The content of a container in memory, variable by variable in C order.
struct MemoryVariable {
  Variable definition;  // an unlimited extent has the size to which it has grown
  Filters filters;
  ByteVector bytes;
};

/// The place where containers in memory become visible, like a directory. Thread-safe.
class MemoryShelf {
 public:
  void publish(const std::string& name, std::vector<MemoryVariable> contents);
  [[nodiscard]] std::optional<std::vector<MemoryVariable>> find(const std::string& name) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<MemoryVariable>> containers_;
};

std::unique_ptr<ContainerSink> memory_container(std::shared_ptr<MemoryShelf> shelf, std::string name);

using Sink =
    std::variant<std::unique_ptr<ByteSink>, std::unique_ptr<ObjectSink>, std::unique_ptr<ContainerSink>>;

/// Makes everything given to the sink so far durable, in the sink's own way (see above).
inline Status commit(Sink& sink) {
  return std::visit(
      [](auto& held) {
        if constexpr (requires { held->commit(); })
          return held->commit();
        else
          return held->sync();
      },
      sink);
}

}  // namespace tailrace::sinks
