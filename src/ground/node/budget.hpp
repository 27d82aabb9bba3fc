// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <string>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::node {

/// The uses of memory that draw on a node's budget.
///   staging      streams capture into it; servers assemble and encode records in it
///   stripes      arrays pass through them to collective files; asynchronous calls capture beside them
///   captures     checkpoints copy the program's data into them
///   portions     parts of out-of-core arrays in memory
///   intervals    streams accumulate fields in them over the steps of an interval
///   coordinates  the coordinates of layouts, for the heads of files
///   pages        the parts of shared files and global arrays in memory
///   input        the decoded steps of input streams that are needed now or soon
enum class Use { staging, stripes, captures, portions, intervals, coordinates, pages, input };
constexpr std::size_t uses = 8;

/// The number of bytes that the library may take on one node, in all ranks together. All calls are local and
/// do not block. Any thread may make them.
class Budget {
 public:
  /// The bytes that all ranks of the node have drawn. An account lies in memory that these ranks share. It
  /// begins as zeros.
  struct Account {
    struct Sum {
      std::atomic<Bytes> now{0};
      std::atomic<Bytes> most{0};
    };
    alignas(64) Sum all;
    std::array<Sum, uses> by_use;
    std::atomic<int> decoders{0};
    std::atomic<std::int64_t> refusals{0};
  };

  /// Makes a budget without a limit, for one process.
  Budget() : own_(std::make_unique<Account>()), account_(own_.get()) {}
  /// `account` must outlive the budget.
  Budget(Account& account, Bytes limit) : account_(&account), limit_(limit) {}

  [[nodiscard]] Bytes limit() const { return limit_; }
  /// Returns how many bytes can still be drawn now.
  [[nodiscard]] Bytes left() const { return limit_ - account_->all.now; }
  /// Returns the most bytes that the ranks of the node have held at one moment, all together.
  [[nodiscard]] Bytes most() const { return account_->all.most; }
  /// Returns most() and the largest sum of each use as text: "1.5GiB (staging 1GiB, captures 768MiB)". The
  /// uses may have had their largest sums at different moments.
  [[nodiscard]] std::string most_text() const;
  /// The number of tasks on the node that have memory to decode records of input streams. They give it back
  /// soon.
  [[nodiscard]] std::atomic<int>& decoders() { return account_->decoders; }
  /// Returns how often a draw was refused on this node.
  [[nodiscard]] std::int64_t refusals() const { return account_->refusals; }

 private:
  friend class Draw;
  Status take(Use use, Bytes bytes);
  void give_back(Use use, Bytes bytes);
  [[nodiscard]] std::string text(std::atomic<Bytes> Account::Sum::*value) const;

  std::unique_ptr<Account> own_;
  Account* account_;
  Bytes limit_ = std::numeric_limits<Bytes>::max();
};

/// The bytes that one owner has drawn on a budget. The destructor gives them back. Any thread may take and
/// give back.
class Draw {
 public:
  /// A new draw holds no bytes. `budget` must outlive it.
  Draw(Budget& budget, Use use) : budget_(budget), use_(use) {}
  ~Draw() { give_back(); }
  Draw(const Draw&) = delete;
  Draw& operator=(const Draw&) = delete;

  /// Takes all of `bytes` or nothing. If the budget has less left, returns Code::memory; the text names what
  /// each use has taken.
  Status take(Bytes bytes);
  void give_back(Bytes bytes);
  void give_back() { give_back(bytes_); }
  /// Hands all bytes of this draw, which stay drawn, to another draw of the same use on this node: returns
  /// their number, and the other draw passes it to inherit(). This cannot fail.
  Bytes bequeath() { return bytes_.exchange(0); }
  void inherit(Bytes bytes) { bytes_ += bytes; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  Budget& budget_;
  Use use_;
  std::atomic<Bytes> bytes_{0};
};

}  // namespace tailrace::node
