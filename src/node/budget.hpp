// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <string>

#include "base/status.hpp"
#include "base/types.hpp"

namespace tailrace::node {

/// What takes large memory: staging (with what servers assemble and encode in), windows of collective files
/// and what asynchronous calls capture beside them, captures of checkpoints, portions of out-of-core arrays.
enum class Share { staging, windows, captures, portions };
constexpr std::size_t shares = 4;

/// The memory that the library may take on one node. The ranks of the node draw on it side by side. All calls
/// are local, do not block, and may be made by any thread.
class Budget {
 public:
  /// Lies in memory that the ranks of the node share, and is zero at first.
  struct Account {
    struct Sum {
      std::atomic<Bytes> now{0};
      std::atomic<Bytes> most{0};
    };
    alignas(64) Sum all;
    std::array<Sum, shares> by_share;
  };

  /// Without a limit, for one process.
  Budget() : own_(std::make_unique<Account>()), account_(own_.get()) {}
  /// `account` must outlive the budget.
  Budget(Account& account, Bytes limit) : account_(&account), limit_(limit) {}

  [[nodiscard]] Bytes limit() const { return limit_; }
  /// Returns what the ranks of the node have drawn in all, at most so far.
  [[nodiscard]] Bytes most() const { return account_->all.most; }
  /// Returns the same as text, as "1.5GiB (staging 1GiB, captures 768MiB)". Each share is at its own most,
  /// which may be at another time.
  [[nodiscard]] std::string most_text() const;

 private:
  friend class Draw;
  Status take(Share share, Bytes bytes);
  void give_back(Share share, Bytes bytes);
  [[nodiscard]] std::string text(std::atomic<Bytes> Account::Sum::*value) const;

  std::unique_ptr<Account> own_;
  Account* account_;
  Bytes limit_ = std::numeric_limits<Bytes>::max();
};

/// Bytes that are drawn on a budget. The destructor gives them back. Any thread may take and give back.
class Draw {
 public:
  /// Holds nothing yet. `budget` must outlive the draw.
  Draw(Budget& budget, Share share) : budget_(budget), share_(share) {}
  ~Draw() { give_back(); }
  Draw(const Draw&) = delete;
  Draw& operator=(const Draw&) = delete;

  /// Returns Code::memory, and takes nothing, if the budget does not suffice. The text says what has taken
  /// it.
  Status take(Bytes bytes);
  void give_back(Bytes bytes);
  void give_back() { give_back(bytes_); }
  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  Budget& budget_;
  Share share_;
  std::atomic<Bytes> bytes_{0};
};

}  // namespace tailrace::node
