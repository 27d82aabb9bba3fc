// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/session/session.hpp"
#include "faces/checkpoint/compression.hpp"
#include "faces/checkpoint/items.hpp"
#include "faces/checkpoint/slots.hpp"

namespace tailrace::checkpoint {

/// The outputs of the session. A checkpoint records how far they had come. Every rank makes these calls; they
/// are local.
class Outputs {
 public:
  /// One rank's contribution to the vote on a save.
  struct Standing {
    ByteVector told;             // told to the other ranks, which do not know it
    ByteVector told_first = {};  // told to rank 0 alone
    std::function<Status()>
        make_durable;  // runs on any thread; the rank's part counts only after it. Empty: nothing to do
  };
  virtual ~Outputs() = default;
  /// Blocks until the system has everything that this rank had to write so far. Fails if a write failed, and
  /// if the checkpoint cannot record one of the outputs.
  virtual Result<Standing> stand(journal::Overwritten overwritten) = 0;
  /// On rank 0. Returns OK if a checkpoint can record together all outputs that the ranks have told of, by
  /// Standing::told and Standing::told_first.
  [[nodiscard]] virtual Status check(const std::vector<ByteVector>& told,
                                     const std::vector<ByteVector>& told_first,
                                     journal::Overwritten overwritten) const = 0;
  /// Returns how far the outputs are now. `told` has each rank's Standing::told, and on rank 0 `told_first`
  /// each rank's Standing::told_first. What rank 0 returns counts.
  virtual ByteVector positions(const std::vector<ByteVector>& told,
                               const std::vector<ByteVector>& told_first) = 0;
  /// Returns true if storage holds the outputs as far as `positions` says.
  [[nodiscard]] virtual bool are_settled(const ByteVector& positions) const = 0;
  /// Returns `positions` with the failures among them that are known by now.
  [[nodiscard]] virtual ByteVector with_failures(const ByteVector& positions) const = 0;
  /// Returns Code::state if one of the outputs of `positions` is open in a way that cannot keep its bytes.
  [[nodiscard]] virtual Status can_keep(const ByteVector& /*positions*/) const { return {}; }
  /// From now on until the session ends, the outputs keep the bytes of `positions` before the program writes
  /// over them. A program that loads this generation of the checkpoint, or an earlier one that has recorded
  /// the bytes, finds them.
  virtual void keep_since(const std::string& checkpoint, std::int64_t generation,
                          const ByteVector& positions) = 0;
  /// Any thread. Returns the oldest generation whose undo files are needed to go on from the copy; all later
  /// ones are needed, too.
  [[nodiscard]] virtual std::int64_t oldest_undo(const Copy& copy) const = 0;
  /// Returns what a save holds of the outputs beside the program's items. The names are the same on every
  /// rank.
  [[nodiscard]] virtual std::vector<NamedItem> own_items() const { return {}; }
  /// Returns where a load puts the library's own items of the copy. The memory stays until the next load.
  virtual Result<std::vector<NamedItem>> make_own_items(const Copy& /*copy*/) {
    return std::vector<NamedItem>();
  }
  /// Makes the outputs go on from what the copy has recorded.
  virtual Status resume(const Copy& copy) = 0;
};

/// The options of a checkpoint, read from an options string.
struct Options {
  enum class Busy { wait, drop, replace };
  enum class Capture { copy, copy_on_write };
  int keep = 2;
  std::int64_t keep_every = 0;
  Mode mode = Mode::parallel;
  bool async = true;
  Busy busy = Busy::wait;
  Capture capture = Capture::copy;
  journal::Overwritten overwritten = journal::Overwritten::refuse;
  Compression compression;
};
/// Returns Code::settings with the nearest valid key or value.
Result<Options> parse_options(const std::string& text);

/// The saves and the loads of a checkpoint share these things on one rank.
struct Context {
  session::Session& session;
  Outputs& outputs;
  const std::string name;
  const Options options;
  Uuid run;                    // of this run of the program
  std::optional<Slots> slots;  // on the first rank alone

  [[nodiscard]] bool is_first() const { return session.rank() == 0; }
  [[nodiscard]] bool has_threads() const { return session.threads().waiting_threads() > 0; }
  [[nodiscard]] storage::Target& target() const { return session.target(); }
};

}  // namespace tailrace::checkpoint
