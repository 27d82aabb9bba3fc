// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/objects/places.hpp"

#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "ground/storage/objects/file_objects.hpp"
#include "ground/storage/objects/whole_objects.hpp"

namespace tailrace::storage {

namespace {

/// A new kind of places is a row here, beside what the room's page (src/ground/README.md) says. The first row
/// has all names without the prefix of another.
struct Table {
  std::mutex mutex;
  std::deque<PlaceKind> kinds{{.name = "files", .use = "directories of a target, one file for each object"}};
  struct Service {
    std::mutex mutex;  // held while the service is made, which may take long
    std::shared_ptr<ObjectService> made;
  };
  std::map<const PlaceKind*, Service> services;
};

Table& table() {
  static Table& held = *new Table;
  return held;
}

/// Stands for a service that this build or machine cannot make.
class NoService final : public ObjectService {
 public:
  explicit NoService(Status why) : why_(std::move(why)) {}
  Result<std::optional<Bytes>> size_of(const std::string& name) override { return why_.in(name); }
  Result<std::optional<Bytes>> read(const std::string& name, Bytes, std::span<std::byte>) override {
    return why_.in(name);
  }
  Result<std::optional<Whole>> get(const std::string& name) override { return why_.in(name); }
  Status put(std::span<const Object> objects) override { return why_.in(objects.front().name); }
  Result<std::optional<std::string>> put_if(const Object& object, const std::string&) override {
    return why_.in(object.name);
  }
  Status remove(const std::string& name) override { return why_.in(name); }
  Result<std::vector<std::string>> list(const std::string& prefix, std::size_t) override {
    return why_.in(prefix);
  }

 private:
  const Status why_;
};

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
    Result<std::shared_ptr<ObjectService>> service = std::shared_ptr<ObjectService>();
    if (kind.service) service = service_of(kind);
    if (!service.is_ok()) return WholeObjects::at(std::make_shared<NoService>(service.status()));
    const std::lock_guard guard(mutex_);
    ObjectsAt& made = made_[&kind];
    if (!made) made = kind.service ? WholeObjects::at(*service) : FileObjects::at(target_, reading_);
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

std::vector<const PlaceKind*> place_kinds() {
  Table& all = table();
  const std::lock_guard guard(all.mutex);
  std::vector<const PlaceKind*> kinds;
  for (const PlaceKind& kind : all.kinds) kinds.push_back(&kind);
  return kinds;
}

Result<std::shared_ptr<ObjectService>> service_of(const PlaceKind& kind) {
  Table& all = table();
  std::unique_lock table_guard(all.mutex);
  Table::Service& service = all.services[&kind];
  table_guard.unlock();
  const std::lock_guard guard(service.mutex);
  if (service.made != nullptr) return service.made;
  Result<std::shared_ptr<ObjectService>> made = kind.service();
  if (made.is_ok()) service.made = *made;
  return made;
}

ObjectsAt objects_at(std::shared_ptr<Target> target, OpenMode reading) {
  return [places = std::make_shared<Places>(std::move(target), reading)](std::string place) {
    return places->at(std::move(place));
  };
}

}  // namespace tailrace::storage
