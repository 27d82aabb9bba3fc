// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "../../ground/storage/scratch.hpp"
#include "../variables/reading.hpp"
#include "ground/base/text.hpp"

namespace tailrace::variables::test {

/// A store of Zarr in a directory. A test writes its objects one by one.
class Store {
 public:
  void put(const std::string& object, const ByteVector& bytes) {
    const std::string path = cat(this->path(), "/", object);
    EXPECT_TRUE(target_->make_directories(path.substr(0, path.rfind('/'))).is_ok());
    write_bytes(*target_, path, bytes);
  }
  void put(const std::string& object, const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    put(object, ByteVector(bytes.begin(), bytes.end()));
  }
  [[nodiscard]] std::string path() const { return scratch_ / "a.zarr"; }
  [[nodiscard]] const std::shared_ptr<storage::Target>& target() const { return target_; }

 private:
  storage::ScratchDirectory scratch_;
  std::shared_ptr<storage::Target> target_ = storage::posix_target();
};

}  // namespace tailrace::variables::test
