// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/objects/places.hpp"

#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "ground/storage/objects/file_objects.hpp"

namespace tailrace::storage {

namespace {

/// A new kind of places is a row here, beside what the room's page (src/ground/README.md) says. The first row
/// has all names without the prefix of another.
struct Table {
  std::mutex mutex;
  std::deque<PlaceKind> kinds{
      {.name = "files", .use = "directories of a target, one file for each object", .at = FileObjects::at}};
};

Table& table() {
  static Table& held = *new Table;
  return held;
}

/// The places of one target, of all kinds. Those of a kind are made when its first place is asked for.
class Places {
 public:
  Places(std::shared_ptr<Target> target, OpenMode reading) : target_(std::move(target)), reading_(reading) {}

  std::unique_ptr<KeyedObjects> at(std::string place) {
    const PlaceKind& kind = place_kind_of(place);
    return of(kind)(std::move(place));
  }

 private:
  ObjectsAt of(const PlaceKind& kind) {
    const std::lock_guard guard(mutex_);
    ObjectsAt& made = made_[&kind];
    if (!made) made = kind.at(target_, reading_);
    return made;
  }

  const std::shared_ptr<Target> target_;
  const OpenMode reading_;
  std::mutex mutex_;
  std::map<const PlaceKind*, ObjectsAt> made_;
};

}  // namespace

const PlaceKind& place_kind_of(std::string_view place) {
  Table& all = table();
  const std::lock_guard guard(all.mutex);
  for (const PlaceKind& kind : all.kinds) {
    if (!kind.prefix.empty() && place.starts_with(kind.prefix)) return kind;
  }
  return all.kinds.front();
}

void add_place_kind(PlaceKind kind) {
  Table& all = table();
  const std::lock_guard guard(all.mutex);
  all.kinds.push_back(std::move(kind));
}

ObjectsAt objects_at(std::shared_ptr<Target> target, OpenMode reading) {
  return [places = std::make_shared<Places>(std::move(target), reading)](std::string place) {
    return places->at(std::move(place));
  };
}

}  // namespace tailrace::storage
