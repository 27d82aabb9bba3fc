// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "ground/storage/objects/keyed_objects.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// A kind of places that keep objects by their keys: a row of the table in places.cpp.
struct PlaceKind {
  std::string_view name;
  std::string_view use;  // what it is for
  /// The beginning of its places' names ("bucket://"). Empty: all other names have this kind.
  std::string_view prefix{};
  /// Returns the places of this kind. `target` is the one that names of the places are given to elsewhere;
  /// the kind of directories keeps its objects there. `reading` says what find() makes of an object that is
  /// none (FileObjects): OpenMode::read_regular is for places that any program may have written.
  std::function<ObjectsAt(const std::shared_ptr<Target>& target, OpenMode reading)> at;
};

/// Returns the kind that a place's name has by its prefix. Kinds stay until the process ends. Thread-safe, as
/// all functions here.
const PlaceKind& place_kind_of(std::string_view place);
/// True if the objects of the place are files in a directory of a target.
inline bool is_of_files(std::string_view place) { return place_kind_of(place).prefix.empty(); }
/// Adds a kind with a prefix to the table while the program runs, as a test does with a class of its own.
void add_place_kind(PlaceKind kind);

/// Returns the objects of any place: those of the kind that the place's name has. What opens a store, to
/// write or to read it, gets its objects here.
ObjectsAt objects_at(std::shared_ptr<Target> target, OpenMode reading = OpenMode::read);

}  // namespace tailrace::storage
