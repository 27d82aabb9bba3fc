// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ground/storage/objects/keyed_objects.hpp"
#include "ground/storage/objects/object_service.hpp"

namespace tailrace::storage {

/// The objects of one place that were written in parts and are not put yet: what a page cache is to files.
/// All users of the place in one process share it. It ends with the last of them, and what it has then is
/// lost. Thread-safe; blocks on the service.
class WholePlace {
 public:
  WholePlace(std::shared_ptr<ObjectService> service, std::string place)
      : service_(std::move(service)), place_(std::move(place)) {}

  Result<std::optional<Bytes>> size_of(const std::string& name);
  Result<std::optional<Bytes>> read(const std::string& name, Bytes offset, std::span<std::byte> data);
  /// Writes a part, as KeyedObjects::write() does. The whole object stays in memory until sync().
  Status write(const std::string& name, Bytes offset, Parts parts, std::span<const std::byte> begin);
  Status put(std::span<const ObjectService::Object> objects);
  /// Makes the object `name` from the first `size` bytes of the object `source` of another place.
  Status copy_from(WholePlace& from, const std::string& source, const std::string& name, Bytes size);
  Status remove(const std::string& name);
  /// Returns the names behind `prefix`, as ObjectService::list() does, also of objects that are not put yet.
  Result<std::vector<std::string>> list(const std::string& prefix, std::size_t most);
  /// Puts all objects that were written since they were put last, in the order of the first writes since
  /// then.
  Status sync();
  void give_up_writes();
  [[nodiscard]] const std::string& place() const { return place_; }
  /// Objects of more bytes do not stay in memory when they were put.
  static constexpr Bytes most_kept = Bytes{1} << 20;

 private:
  struct Written {
    ByteVector bytes;
    bool is_changed = false;  // since it was put
    bool is_used = false;     // written since the last sync()
    std::int64_t number = 0;  // of the first write since it was put, counted over the place
  };
  /// Returns the object in memory, read if it exists. The caller holds `changes_`.
  Result<Written*> loaded(const std::string& name);
  void drop(const std::string& name);
  [[nodiscard]] bool is_changed(const std::string& name);
  [[nodiscard]] const Written* changed(const std::string& name) const;

  const std::shared_ptr<ObjectService> service_;
  const std::string place_;
  std::mutex changes_;  // held by whoever changes anything, also while the service answers
  std::mutex mutex_;    // for changes and looks at `written_`, and never while the service answers
  std::map<std::string, Written> written_;
  std::int64_t writes_ = 0;
};

/// Objects of a service that takes them whole. Parts of an object are put together in memory of the process
/// that writes them, and sync() puts it: no other process may write parts of the same object. A place is
/// there once make() has put an object of no bytes into it, which list() leaves out.
class WholeObjects final : public KeyedObjects {
 public:
  using PlaceOf = std::function<std::shared_ptr<WholePlace>(const std::string& place)>;
  WholeObjects(std::shared_ptr<ObjectService> service, std::shared_ptr<WholePlace> shared, PlaceOf others)
      : service_(std::move(service)), shared_(std::move(shared)), others_(std::move(others)) {}
  /// Returns the places of a service. All objects made by one result share what is not put yet.
  static ObjectsAt at(const std::shared_ptr<ObjectService>& service);

  [[nodiscard]] const std::string& place() const override { return shared_->place(); }
  Result<bool> is_made() override;
  Status make() override;
  Status unmake() override;
  Result<bool> make_group(const std::string& group) override;
  Status remove_group(const std::string& group) override;
  Result<std::unique_ptr<FoundObject>> find(const std::string& key) override;
  Result<bool> exists(const std::string& key) override;
  Result<std::vector<std::string>> list(const std::string& group) override;
  Status put(std::span<const Text> objects) override;
  Status write(const std::string& key, Bytes offset, Parts parts,
               std::span<const std::byte> begin = {}) override {
    return shared_->write(name_of(key), offset, parts, begin);
  }
  Status copy_from(const std::string& place, const std::string& key, Bytes size) override;
  Status remove(const std::string& key) override;
  Status remove_if_there(const std::string& key) override { return shared_->remove(name_of(key)); }
  Status sync_keys() override { return {}; }
  Status sync() override { return shared_->sync(); }
  void give_up_writes() override { shared_->give_up_writes(); }

 private:
  const std::shared_ptr<ObjectService> service_;
  const std::shared_ptr<WholePlace> shared_;
  const PlaceOf others_;
};

}  // namespace tailrace::storage
