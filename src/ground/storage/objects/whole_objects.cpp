// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/objects/whole_objects.hpp"

#include <algorithm>
#include <cerrno>

#include "ground/base/text.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::storage {

namespace {

/// Makes a place exist that has no other object: services have no directories.
constexpr std::string_view made_key = ".tailrace.made";

class FoundWhole final : public FoundObject {
 public:
  FoundWhole(std::shared_ptr<WholePlace> place, std::string name, Bytes size)
      : place_(std::move(place)), name_(std::move(name)), size_(size) {}
  Result<Bytes> size() override { return size_; }
  /// Returns ESTALE for an object that somebody has removed meanwhile: whoever looks again finds none.
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override {
    const Result<std::optional<Bytes>> got = place_->read(name_, offset, data);
    TR_TRY(got.status());
    return got->has_value() ? Result<Bytes>(**got) : io_error("read", name_, ESTALE);
  }

 private:
  const std::shared_ptr<WholePlace> place_;
  const std::string name_;
  const Bytes size_;
};

/// The places of one service that this process uses now.
class PlacesInUse {
 public:
  explicit PlacesInUse(std::shared_ptr<ObjectService> service) : service_(std::move(service)) {}
  [[nodiscard]] const std::shared_ptr<ObjectService>& service() const { return service_; }
  std::shared_ptr<WholePlace> of(const std::string& place) {
    const std::lock_guard guard(mutex_);
    std::erase_if(all_, [](const auto& each) { return each.second.expired(); });
    std::weak_ptr<WholePlace>& known = all_[place];
    std::shared_ptr<WholePlace> used = known.lock();
    if (used == nullptr) known = used = std::make_shared<WholePlace>(service_, place);
    return used;
  }

 private:
  const std::shared_ptr<ObjectService> service_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<WholePlace>> all_;
};

std::unique_ptr<KeyedObjects> objects_of(const std::shared_ptr<PlacesInUse>& places,
                                         const std::string& place) {
  return std::make_unique<WholeObjects>(
      places->service(), places->of(tidy_path(place)),
      [places](const std::string& other) { return places->of(tidy_path(other)); });
}

}  // namespace

/// Objects that are as they were put are looked at in the service, where something else may have removed
/// them.
const WholePlace::Written* WholePlace::changed(const std::string& name) const {
  const auto found = written_.find(name);
  return found != written_.end() && found->second.is_changed ? &found->second : nullptr;
}

Result<std::optional<Bytes>> WholePlace::size_of(const std::string& name) {
  {
    const std::lock_guard guard(mutex_);
    if (const Written* const found = changed(name)) return std::optional<Bytes>(std::ssize(found->bytes));
  }
  return service_->size_of(name);
}

Result<std::optional<Bytes>> WholePlace::read(const std::string& name, Bytes offset,
                                              std::span<std::byte> data) {
  std::unique_lock guard(mutex_);
  const Written* const found = changed(name);
  if (found == nullptr) {
    guard.unlock();
    return service_->read(name, offset, data);
  }
  const ByteVector& bytes = found->bytes;
  const Bytes count = std::clamp<Bytes>(std::ssize(bytes) - offset, 0, std::ssize(data));
  std::copy_n(bytes.begin() + std::min(offset, std::ssize(bytes)), count, data.begin());
  return std::optional<Bytes>(count);
}

Result<WholePlace::Written*> WholePlace::loaded(const std::string& name) {
  if (const auto found = written_.find(name); found != written_.end()) return &found->second;
  Result<std::optional<ObjectService::Whole>> whole = service_->get(name);
  TR_TRY(whole.status());
  const std::lock_guard guard(mutex_);
  Written& made = written_[name];
  if (whole->has_value()) made.bytes = std::move((*whole)->bytes);
  return &made;
}

Status WholePlace::write(const std::string& name, Bytes offset, Parts parts,
                         std::span<const std::byte> begin) {
  return guarded([&]() -> Status {
    const std::lock_guard changes(changes_);
    const Result<Written*> object = loaded(name);
    TR_TRY(object.status());
    const std::lock_guard guard(mutex_);
    ByteVector& bytes = (*object)->bytes;
    if (!(*object)->is_changed) (*object)->number = ++writes_;
    (*object)->is_changed = (*object)->is_used = true;
    if (bytes.size() < begin.size()) {
      bytes.resize(begin.size());
      std::ranges::copy(begin, bytes.begin());
    }
    bytes.resize(std::max(bytes.size(), static_cast<std::size_t>(offset + bytes_in(parts))));
    for (const auto& part : parts) {
      std::ranges::copy(part, bytes.begin() + offset);
      offset += std::ssize(part);
    }
    return {};
  });
}

/// A whole object takes the place of all parts that were written of it.
Status WholePlace::put(std::span<const ObjectService::Object> objects) {
  const std::lock_guard changes(changes_);
  for (const ObjectService::Object& each : objects) drop(each.name);
  return service_->put(objects);
}

Status WholePlace::copy_from(WholePlace& from, const std::string& source, const std::string& name,
                             Bytes size) {
  const Result<std::optional<Bytes>> there = from.size_of(source);
  TR_TRY(there.status());
  if (!there->has_value()) return io_error("copy", source, ENOENT);
  if (**there < size)
    return {Code::corrupt, cat(source, ": has ", counted(**there, "byte"), ", expected at least ", size,
                               ": something else has changed it")};
  // The service copies by itself what it has.
  if (**there == size && !from.is_changed(source)) {
    const std::lock_guard changes(changes_);
    drop(name);
    return service_->copy(source, name);
  }
  ByteVector bytes(static_cast<std::size_t>(size));
  const Result<std::optional<Bytes>> got = from.read(source, 0, bytes);
  TR_TRY(got.status());
  if (got->value_or(0) < size) return io_error("copy", source, ESTALE);
  const ObjectService::Object copied{name, bytes};
  return put({&copied, 1});
}

Status WholePlace::remove(const std::string& name) {
  const std::lock_guard changes(changes_);
  drop(name);
  return service_->remove(name);
}

void WholePlace::drop(const std::string& name) {
  const std::lock_guard guard(mutex_);
  written_.erase(name);
}

bool WholePlace::is_changed(const std::string& name) {
  const std::lock_guard guard(mutex_);
  return changed(name) != nullptr;
}

Result<std::vector<std::string>> WholePlace::list(const std::string& prefix, std::size_t most) {
  // What is put between the two looks is found by both.
  std::vector<std::string> in_memory;
  {
    const std::lock_guard guard(mutex_);
    for (auto each = written_.lower_bound(prefix); each != written_.end() && each->first.starts_with(prefix);
         ++each) {
      if (!each->second.is_changed) continue;
      const std::string rest = each->first.substr(prefix.size());
      in_memory.push_back(rest.substr(0, rest.find('/')));
    }
  }
  Result<std::vector<std::string>> names = service_->list(prefix, most);
  TR_TRY(names.status());
  names->insert(names->end(), in_memory.begin(), in_memory.end());
  std::ranges::sort(*names);
  names->erase(std::unique(names->begin(), names->end()), names->end());
  if (names->size() > most) names->resize(most);
  return names;
}

/// Small objects of this step may get further parts in the next one, as the times do. They stay in memory
/// until a sync() that finds them unchanged. Others are large, and mostly whole: they go behind their put.
Status WholePlace::sync() {
  const std::lock_guard changes(changes_);
  std::vector<std::pair<const std::string, Written>*> changed;
  for (auto& each : written_) {
    if (each.second.is_changed) changed.push_back(&each);
  }
  std::ranges::sort(changed, {}, [](const auto* each) { return each->second.number; });
  for (std::size_t next = 0; next < changed.size();) {
    std::vector<ObjectService::Object> together;
    const std::size_t first = next;
    for (; next < changed.size() && next < first + KeyedObjects::most_at_once; ++next)
      together.push_back({changed[next]->first, changed[next]->second.bytes});
    TR_TRY(service_->put(together));
    const std::lock_guard guard(mutex_);
    for (std::size_t i = first; i < next; ++i) {
      Written& object = changed[i]->second;
      object.is_changed = false;
      if (std::ssize(object.bytes) > most_kept) written_.erase(written_.find(changed[i]->first));
    }
  }
  const std::lock_guard guard(mutex_);
  std::erase_if(written_, [](const auto& each) { return !each.second.is_used; });
  for (auto& [name, object] : written_) object.is_used = false;
  return {};
}

void WholePlace::give_up_writes() {
  const std::lock_guard changes(changes_);
  const std::lock_guard guard(mutex_);
  written_.clear();
}

ObjectsAt WholeObjects::at(const std::shared_ptr<ObjectService>& service) {
  return [places = std::make_shared<PlacesInUse>(service)](std::string place) {
    return objects_of(places, std::move(place));
  };
}

Result<bool> WholeObjects::is_made() {
  const Result<std::vector<std::string>> any = shared_->list(names_below(place()), 1);
  TR_TRY(any.status());
  return !any->empty();
}

Status WholeObjects::make() {
  const ObjectService::Object made{name_of(made_key), {}};
  return shared_->put({&made, 1});
}

Status WholeObjects::unmake() { return shared_->remove(name_of(made_key)); }

Result<bool> WholeObjects::make_group(const std::string& group) {
  const Result<std::vector<std::string>> any = shared_->list(names_below(name_of(group)), 1);
  TR_TRY(any.status());
  return any->empty();
}

Status WholeObjects::remove_group(const std::string& group) {
  const std::string prefix = names_below(name_of(group));
  const Result<std::vector<std::string>> names = shared_->list(prefix, all_names);
  TR_TRY(names.status());
  for (const std::string& each : *names) TR_TRY(shared_->remove(prefix + each));
  return {};
}

Result<std::unique_ptr<FoundObject>> WholeObjects::find(const std::string& key) {
  const Result<std::optional<Bytes>> size = shared_->size_of(name_of(key));
  TR_TRY(size.status());
  if (!size->has_value()) return std::unique_ptr<FoundObject>();
  return std::unique_ptr<FoundObject>(std::make_unique<FoundWhole>(shared_, name_of(key), **size));
}

Result<bool> WholeObjects::exists(const std::string& key) {
  const Result<std::optional<Bytes>> size = shared_->size_of(name_of(key));
  TR_TRY(size.status());
  return size->has_value();
}

Result<std::vector<std::string>> WholeObjects::list(const std::string& group) {
  const std::string directory = group.empty() ? place() : name_of(group);
  Result<std::vector<std::string>> names = shared_->list(names_below(directory), all_names);
  TR_TRY(names.status());
  const bool is_there = !names->empty();
  std::erase(*names, made_key);
  if (is_there) return names;
  const Result<std::optional<Bytes>> object = service_->size_of(directory);
  TR_TRY(object.status());
  if (object->has_value()) return io_error("list", directory, ENOTDIR);
  return group.empty() ? names : io_error("list", directory, ENOENT);
}

Status WholeObjects::put(std::span<const Text> objects) {
  std::vector<ObjectService::Object> all;
  for (const Text& each : objects) all.push_back({name_of(each.key), std::as_bytes(std::span(each.text))});
  return all.empty() ? Status() : shared_->put(all);
}

Status WholeObjects::copy_from(const std::string& place, const std::string& key, Bytes size) {
  return guarded([&]() -> Status {
    const std::shared_ptr<WholePlace> from = others_(place);
    return shared_->copy_from(*from, names_below(from->place()) + key, name_of(key), size);
  });
}

Status WholeObjects::remove(const std::string& key) {
  const Result<bool> there = exists(key);
  TR_TRY(there.status());
  return *there ? shared_->remove(name_of(key)) : io_error("remove", name_of(key), ENOENT);
}

}  // namespace tailrace::storage
