// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ground/storage/objects/keyed_objects.hpp"

namespace tailrace::storage {

using Bucket = std::map<std::string, ByteVector>;  // the objects by place and key

class BytesFound final : public FoundObject {
 public:
  explicit BytesFound(ByteVector bytes) : bytes_(std::move(bytes)) {}
  Result<Bytes> size() override { return std::ssize(bytes_); }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override {
    const Bytes count = std::clamp<Bytes>(std::ssize(bytes_) - offset, 0, std::ssize(data));
    std::copy_n(bytes_.begin() + std::min(offset, std::ssize(bytes_)), count, data.begin());
    return count;
  }

 private:
  const ByteVector bytes_;
};

/// Objects in a map. As in stores of objects, places and groups are no more than what keys begin with, and
/// everything is durable at once.
class BucketObjects final : public KeyedObjects {
 public:
  BucketObjects(std::shared_ptr<Bucket> bucket, std::string place)
      : bucket_(std::move(bucket)), place_(std::move(place)) {}
  [[nodiscard]] const std::string& place() const override { return place_; }
  Result<bool> is_made() override {
    const auto found = bucket_->lower_bound(place_ + "/");
    return found != bucket_->end() && found->first.starts_with(place_ + "/");
  }
  Status make() override { return {}; }
  Status unmake() override { return {}; }
  Result<bool> make_group(const std::string& group) override { return !begins(group).is_ok(); }
  Status remove_group(const std::string& group) override {
    std::erase_if(*bucket_, [&](const auto& each) { return each.first.starts_with(name_of(group) + "/"); });
    return {};
  }
  Result<std::unique_ptr<FoundObject>> find(const std::string& key) override {
    const auto found = bucket_->find(name_of(key));
    return found == bucket_->end() ? std::unique_ptr<FoundObject>()
                                   : std::make_unique<BytesFound>(found->second);
  }
  Result<bool> exists(const std::string& key) override { return bucket_->contains(name_of(key)); }
  Result<std::vector<std::string>> list(const std::string& group) override {
    const std::string prefix = group.empty() ? place_ + "/" : name_of(group) + "/";
    std::vector<std::string> names;
    for (const auto& [name, bytes] : *bucket_) {
      if (!name.starts_with(prefix)) continue;
      const std::string next = name.substr(prefix.size(), name.find('/', prefix.size()) - prefix.size());
      if (names.empty() || names.back() != next) names.push_back(next);
    }
    if (names.empty() && !group.empty()) return begins(group);
    return names;
  }
  Status put(std::span<const Text> objects) override {
    for (const Text& each : objects) {
      const auto bytes = std::as_bytes(std::span(each.text));
      (*bucket_)[name_of(each.key)] = ByteVector(bytes.begin(), bytes.end());
    }
    return {};
  }
  Status write(const std::string& key, Bytes offset, Parts parts, std::span<const std::byte> begin) override {
    ByteVector& bytes = (*bucket_)[name_of(key)];
    if (bytes.size() < begin.size()) bytes.assign(begin.begin(), begin.end());
    for (const auto& part : parts) {
      bytes.resize(std::max(bytes.size(), static_cast<std::size_t>(offset) + part.size()));
      std::ranges::copy(part, bytes.begin() + offset);
      offset += std::ssize(part);
    }
    return {};
  }
  Status copy_from(const std::string& place, const std::string& key, Bytes size) override {
    ByteVector bytes = bucket_->at(place + "/" + key);
    bytes.resize(static_cast<std::size_t>(size));
    (*bucket_)[name_of(key)] = std::move(bytes);
    return {};
  }
  Status remove(const std::string& key) override {
    return bucket_->erase(name_of(key)) == 1 ? Status() : io_error("remove", name_of(key), ENOENT);
  }
  Status remove_if_there(const std::string& key) override { return bucket_->erase(name_of(key)), Status(); }
  Status sync_keys() override { return {}; }
  Status sync() override { return {}; }
  void give_up_writes() override {}

 private:
  [[nodiscard]] Status begins(const std::string& group) const {
    const auto found = bucket_->lower_bound(name_of(group) + "/");
    const bool any = found != bucket_->end() && found->first.starts_with(name_of(group) + "/");
    return any ? Status() : io_error("list", name_of(group), ENOENT);
  }

  const std::shared_ptr<Bucket> bucket_;
  const std::string place_;
};

}  // namespace tailrace::storage
