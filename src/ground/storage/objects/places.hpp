// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "ground/storage/objects/keyed_objects.hpp"
#include "ground/storage/objects/object_service.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// A kind of places that keep objects by their keys: a row of the table in places.cpp.
struct PlaceKind {
  std::string_view name;
  std::string_view use;  // what it is for
  /// The beginning of its places' names ("bucket://"). Empty: all other names have this kind.
  std::string_view prefix{};
  /// Returns the service that keeps the objects of this kind, or the reason why this build or machine has
  /// none. It is asked when the first name needs it, by one thread, and again after a failure. Null for the
  /// kind of directories.
  std::function<Result<std::shared_ptr<ObjectService>>()> service{};
};

/// Returns the kind that a place's name has by its prefix. Kinds stay until the process ends. Thread-safe, as
/// all functions here.
const PlaceKind& place_kind_of(std::string_view place);
/// True if the objects of the place are files in a directory of a target.
inline bool is_of_files(std::string_view place) { return place_kind_of(place).prefix.empty(); }
/// Adds a kind with a prefix to the table while the program runs, as a test does with a class of its own.
/// Targets that were made before (with_object_files()) do not know it.
void add_place_kind(PlaceKind kind);
/// Returns all kinds, first that of directories.
std::vector<const PlaceKind*> place_kinds();
/// Returns the service of a kind that has one.
Result<std::shared_ptr<ObjectService>> service_of(const PlaceKind& kind);

/// Returns the objects of any place: those of the kind that the place's name has. `target` has the
/// directories. `reading` says what find() makes of a name there that is no regular file (FileObjects):
/// OpenMode::read_regular is for places that any program may have written. What opens a store, to write or to
/// read it, gets its objects here. If a kind's service cannot be made, every call for its places says why.
ObjectsAt objects_at(std::shared_ptr<Target> target, OpenMode reading = OpenMode::read);

}  // namespace tailrace::storage
