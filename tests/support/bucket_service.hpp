// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/text.hpp"
#include "ground/storage/objects/places.hpp"

namespace tailrace::storage {

/// Objects in a map, whole, with faults: what a service of objects does, and what is left of it when the
/// programs that use it are killed. Destroying everything but the service after a fault that lasts is a kill
/// between two of its calls.
class BucketService final : public ObjectService {
 public:
  struct Plan {
    std::int64_t nth = 0;      // the change that fails, counted from 1; 0: none
    bool lasts = false;        // all calls behind it fail, too, and change nothing
    bool is_made_yet = false;  // the change is made, and fails all the same
    int error = EIO;
  };

  /// Counts changes anew. Each object that is put, copied or removed is a change.
  void restart(Plan plan) {
    const std::lock_guard guard(mutex_);
    plan_ = plan;
    changes_ = 0;
  }
  [[nodiscard]] std::int64_t changes() const { return changes_; }
  [[nodiscard]] bool has_failed() const { return plan_.nth > 0 && changes_ >= plan_.nth; }
  [[nodiscard]] std::map<std::string, ByteVector> all() const {
    const std::lock_guard guard(mutex_);
    std::map<std::string, ByteVector> copy;
    for (const auto& [name, whole] : objects_) copy.emplace(name, whole.bytes);
    return copy;
  }
  /// Has these objects and no others, all of new versions: what other processes have left meanwhile.
  void replace_all(const std::map<std::string, ByteVector>& all) {
    const std::lock_guard guard(mutex_);
    objects_.clear();
    for (const auto& [name, bytes] : all) set({name, bytes});
  }
  void clear() {
    const std::lock_guard guard(mutex_);
    objects_.clear();
  }

  Result<std::optional<Bytes>> size_of(const std::string& name) override {
    const std::lock_guard guard(mutex_);
    TR_TRY(look("size", name));
    const auto found = objects_.find(name);
    return found == objects_.end() ? std::optional<Bytes>() : std::ssize(found->second.bytes);
  }
  Result<std::optional<Bytes>> read(const std::string& name, Bytes offset,
                                    std::span<std::byte> data) override {
    const std::lock_guard guard(mutex_);
    TR_TRY(look("read", name));
    const auto found = objects_.find(name);
    if (found == objects_.end()) return std::optional<Bytes>();
    const ByteVector& bytes = found->second.bytes;
    const Bytes count = std::clamp<Bytes>(std::ssize(bytes) - offset, 0, std::ssize(data));
    std::copy_n(bytes.begin() + std::min(offset, std::ssize(bytes)), count, data.begin());
    return std::optional<Bytes>(count);
  }
  Result<std::optional<Whole>> get(const std::string& name) override {
    const std::lock_guard guard(mutex_);
    TR_TRY(look("get", name));
    const auto found = objects_.find(name);
    return found == objects_.end() ? std::optional<Whole>() : found->second;
  }
  Status put(std::span<const Object> objects) override {
    const std::lock_guard guard(mutex_);
    for (const Object& each : objects) TR_TRY(change("put", each.name, [&] { set(each); }));
    return {};
  }
  Result<std::optional<std::string>> put_if(const Object& object, const std::string& version) override {
    const std::lock_guard guard(mutex_);
    TR_TRY(look("put", object.name));
    const auto found = objects_.find(object.name);
    if ((found == objects_.end() ? "" : found->second.version) != version)
      return std::optional<std::string>();
    TR_TRY(change("put", object.name, [&] { set(object); }));
    return std::optional(objects_[object.name].version);
  }
  Status remove(const std::string& name) override {
    const std::lock_guard guard(mutex_);
    return change("remove", name, [&] { objects_.erase(name); });
  }
  Result<std::vector<std::string>> list(const std::string& prefix, std::size_t most) override {
    const std::lock_guard guard(mutex_);
    TR_TRY(look("list", prefix));
    std::vector<std::string> names;
    for (auto each = objects_.lower_bound(prefix);
         each != objects_.end() && each->first.starts_with(prefix) && names.size() < most; ++each) {
      const std::string rest = each->first.substr(prefix.size());
      const std::string next = rest.substr(0, rest.find('/'));
      if (std::ranges::count(names, next) == 0) names.push_back(next);
    }
    std::ranges::sort(names);  // "a.b" stands before "a/c", and "a" before both
    return names;
  }

 private:
  void set(const Object& object) {
    objects_[object.name] = {ByteVector(object.bytes.begin(), object.bytes.end()), cat(++versions_)};
  }
  Status look(const char* operation, const std::string& name) {
    return plan_.lasts && plan_.nth > 0 && changes_ >= plan_.nth ? io_error(operation, name, EIO) : Status();
  }
  template <typename Change>
  Status change(const char* operation, const std::string& name, const Change& make) {
    TR_TRY(look(operation, name));
    if (++changes_ != plan_.nth) return make(), Status();
    if (plan_.is_made_yet) make();
    return io_error(operation, name, plan_.error);
  }

  mutable std::mutex mutex_;
  std::map<std::string, Whole> objects_;
  std::int64_t versions_ = 0;
  std::int64_t changes_ = 0;
  Plan plan_;
};

/// Adds the places "keyed://..." to the kinds of places of this program, and returns their service. A test
/// calls it before it makes the target, and clears the service.
inline BucketService& keyed_places() {
  static BucketService& bucket = *[] {
    static const auto made = std::make_shared<BucketService>();
    add_place_kind({.name = "keyed", .use = "tests", .prefix = "keyed://", .service = [] {
                      return Result<std::shared_ptr<ObjectService>>(made);
                    }});
    return made.get();
  }();
  return bucket;
}

}  // namespace tailrace::storage
