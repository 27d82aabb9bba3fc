// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/session/session.hpp"
#include "faces/checkpoint/items.hpp"
#include "faces/checkpoint/options.hpp"
#include "faces/checkpoint/slots.hpp"

namespace tailrace::checkpoint {

/// The outputs of the session, its streams and files, as a checkpoint sees them: it records how far they have
/// come. All functions are local. Every rank calls them, except where they say otherwise.
class Outputs {
 public:
  /// One rank's contribution to the vote on a save.
  struct Standing {
    ByteVector told;             // for all ranks: what only this rank knows
    ByteVector told_first = {};  // for rank 0 alone
    /// Makes this rank's outputs durable. The save calls it on any thread, before the rank's part counts.
    /// Empty: there is nothing to do.
    std::function<Status()> make_durable;
  };
  virtual ~Outputs() = default;
  /// Brings this rank's outputs to rest: blocks until the operating system has all bytes that this rank had
  /// to write so far. Returns what the rank contributes to the vote. Fails if a write failed or the
  /// checkpoint cannot record one of the outputs.
  virtual Result<Standing> stand(const std::string& checkpoint, journal::Overwritten overwritten) = 0;
  /// Returns Code::argument if no file can have this name. Rank 0 looks. Every rank names the same file.
  [[nodiscard]] virtual Status can_cover(const std::string& /*path*/) const { return {}; }
  /// Has all later saves of the checkpoint record the size of a file that the program writes itself. Call it
  /// once can_cover() has succeeded on every rank.
  virtual void cover(const std::string& /*checkpoint*/, const std::string& /*path*/) {}
  /// Has the next stand() for the checkpoint record the program's own restart file, and no later one. ""
  /// takes this back. Rank 0's path counts.
  virtual void name_restart_file(const std::string& /*path*/) {}
  /// On rank 0. Returns OK if one checkpoint can record the outputs of all ranks together. `told` and
  /// `told_first` have each rank's Standing::told and Standing::told_first.
  [[nodiscard]] virtual Status check(const std::vector<ByteVector>& told,
                                     const std::vector<ByteVector>& told_first,
                                     journal::Overwritten overwritten) const = 0;
  /// Returns how far the outputs are now. `told` has each rank's Standing::told, and on rank 0 `told_first`
  /// each rank's Standing::told_first. The copy records rank 0's result.
  virtual ByteVector positions(const std::vector<ByteVector>& told,
                               const std::vector<ByteVector>& told_first) = 0;
  /// True if this rank knows that every step of the streams up to `positions` is durable or has failed.
  [[nodiscard]] virtual bool are_settled(const ByteVector& positions) const = 0;
  /// Returns a question that any thread may ask, as long as the session lives. The answer is true once every
  /// step that this rank has ended by now is durable, or has failed as with_failures() says now. It is false
  /// once another step has failed. Until then there is none. Returns an empty function if threads cannot
  /// know.
  [[nodiscard]] virtual std::function<std::optional<bool>()> settled_for_threads() const { return {}; }
  /// Returns `positions` with the failures of steps up to there that this rank knows by now.
  [[nodiscard]] virtual ByteVector with_failures(const ByteVector& positions) const = 0;
  /// On rank 0. Returns the first failure of a step of the open streams up to `positions`, or OK. Leaves out
  /// the streams behind whose failures the program goes on.
  [[nodiscard]] virtual Status unknown_failure(const ByteVector& positions) const = 0;
  /// Says that a failed save has told the program of the failures of the open streams.
  virtual void note_told() = 0;
  /// Says that the program goes on: it knows of each stream whose failure a call has told it before.
  virtual void note_going_on() = 0;
  /// Returns Code::state if an output in `positions` is open in a way in which keep_since() cannot keep its
  /// bytes.
  [[nodiscard]] virtual Status can_keep(const ByteVector& /*positions*/) const { return {}; }
  /// From now on until the session ends, the library copies bytes that `positions` has recorded to undo files
  /// before the program writes over them. A program that loads `generation` of the checkpoint, or an earlier
  /// one that has recorded the bytes, gets them back from there.
  virtual void keep_since(const std::string& checkpoint, std::int64_t generation,
                          const ByteVector& positions) = 0;
  /// Any thread may call it. Returns the oldest generation whose undo files are needed to go on from the
  /// copy; the undo files of all later generations are needed, too.
  [[nodiscard]] virtual std::int64_t oldest_undo(const Copy& copy) const = 0;
  /// On rank 0, on any thread, once a save is committed; waits for storage. Removes what no copy of the
  /// checkpoint needs any more beside the program's files. `copies` are all places where copies may be.
  virtual Status clean_up(const std::string& /*checkpoint*/,
                          const std::vector<std::string>& /*copies*/) const {
    return {};
  }
  /// Returns the library's own items: the state of the outputs, which a save stores beside the program's
  /// items. The names are the same on every rank.
  [[nodiscard]] virtual std::vector<NamedItem> own_items() const { return {}; }
  /// Makes memory for the library's own items in the copy, and returns the items; the load then fills them.
  /// The memory stays until the next load.
  virtual Result<std::vector<NamedItem>> make_own_items(const Copy& /*copy*/) {
    return std::vector<NamedItem>();
  }
  /// Changes no output. Prepares what resume() needs of memory, in place of what an earlier call has
  /// prepared; returns the reason why resume() cannot do its work on this rank.
  virtual Status prepare_resume(const std::string& /*checkpoint*/, const Copy& /*copy*/) { return {}; }
  /// Returns true if resume() changes files, which may fail on one rank. The same on every rank.
  [[nodiscard]] virtual bool changes_files() const { return false; }
  /// Makes the outputs go on where the copy has recorded them for which prepare_resume() has succeeded on
  /// every rank. Fails only where it changes files.
  virtual Status resume() = 0;
};

/// The state that the saves and loads of a checkpoint share on one rank.
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
