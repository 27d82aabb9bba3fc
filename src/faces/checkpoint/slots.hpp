// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "faces/checkpoint/copy.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::checkpoint {

/// A place where a copy may be, as a look at storage has found it.
struct Found {
  std::string path;
  std::int64_t generation = 0;  // as its header tells; 0 if the header cannot be read
  Status status;                // why it is not whole, if it is not
  /// The copy, if it is whole. It leaves out the tables and the places of its parts, which may be large.
  std::optional<Copy> copy;
  bool committed = false;
  bool missing = false;     // there is no file
  bool unfinished = false;  // left by a save that never came to its end: no copy, and no damage
  bool foreign = false;     // no checkpoint has written it
  bool unreadable = false;  // storage failed: what the header tells is unknown
};

/// True if the status says that a copy is not whole: it is damaged, or its file is missing. Otherwise storage
/// has only failed to give the copy, and it may be whole.
bool is_damage(const Status& status);

/// read_copy(), or read_directory() for a look that leaves out the parts of the copies.
using Read = Result<Copy> (*)(storage::Target&, const std::string&);
/// Local. Looks at the copies at `paths`, without the elements. Returns the newest first.
std::vector<Found> look_at(storage::Target& target, const std::vector<std::string>& paths,
                           Read read = read_copy);
/// Local. Returns true if the file at `path` tells that its save was never committed: it has no header yet,
/// or the header says so.
bool is_unfinished(storage::Target& target, const std::string& path);
/// Local. Returns "NAME.lock". A program that saves to or removes copies of checkpoint `name` holds
/// Target::lock of this file.
std::string lock_path(const std::string& name);
/// Local. Renames the copy at `path`, and its parts, so that no load finds it: "state.1" becomes
/// "state.1.aside", or "state.1.aside2" if there is one already. Durable on return. Returns the new name. The
/// caller holds the lock of the checkpoint. If it is killed, the copy has its new name or stays.
Result<std::string> set_aside(storage::Target& target, const std::string& path);
/// Local. Returns the copies of a checkpoint that may be there: "NAME.0", "NAME.1", ... and "NAME.g12".
Result<std::vector<std::string>> find_copies(storage::Target& target, const std::string& name);
/// Local. Returns true if the open file has the mark of a checkpoint's files, and Code::state if no
/// checkpoint has written it: a save would overwrite it.
Result<bool> check_ours(storage::File& file, const std::string& path);
/// Does the same for a part in a file of its own.
Result<bool> check_part_ours(storage::File& file, const std::string& path);
/// Local. Returns the parts that have files of their own beside the copy at `path`.
Result<std::vector<int>> local_parts(storage::Target& target, const std::string& path);
/// Local. Returns the undo files of checkpoint `name` that none of its copies needs: those of generations
/// before the oldest one that a copy still needs. `oldest` returns the oldest generation whose undo files a
/// copy needs; the copy that it gets has no tables. Returns an error if storage does not give one of the
/// copies.
Result<std::vector<journal::UndoName>> useless_undo_files(
    storage::Target& target, const std::string& name, const std::vector<std::string>& copies,
    const std::function<std::int64_t(const Copy&)>& oldest);

/// The places among which saves alternate.
class Slots {
 public:
  /// `keep_every` > 0: each generation that it divides has a place of its own, NAME.gGENERATION.
  /// `are_given`: the user has named the places, which may be links then.
  Slots(std::string name, std::vector<std::string> paths, std::int64_t keep_every, bool are_given = false)
      : name_(std::move(name)), keep_every_(keep_every), are_given_(are_given) {
    for (std::string& path : paths) slots_.push_back({std::move(path)});
  }
  static std::vector<std::string> paths(const std::string& name, int keep);

  /// Local. Looks at the copies that are there, but not at their parts. Returns what it has found, the newest
  /// first. Fails if storage does not tell the generation of a copy. A damaged copy is no failure.
  Result<std::vector<Found>> look(storage::Target& target);
  /// Returns the places of committed copies that are not known to be broken.
  [[nodiscard]] std::vector<std::string> good() const;
  /// Returns the files in which look() has found a header that a failed save had overwritten with zeros,
  /// which may be in memory alone. A save makes them durable before it commits: a loss of power could bring
  /// the header back, with a generation that is not known here any more.
  [[nodiscard]] const std::vector<std::string>& failed() const { return failed_; }
  /// Notes that they are durable.
  void forget_failed() { failed_.clear(); }
  /// Returns the next save's generation: one more than any ever begun.
  [[nodiscard]] std::int64_t next_generation() const { return highest_ + 1; }
  /// Returns Code::corrupt if no copy of that generation could be loaded.
  [[nodiscard]] Status check_next_generation() const;
  /// Returns the place for that generation. A place that never had a copy comes first, then one whose
  /// copy was never committed, then the oldest broken copy's, then the oldest copy's.
  [[nodiscard]] std::string place_for(std::int64_t generation) const;
  /// Local; changes nothing on storage. Checks the places that a save of `ranks` ranks will take. Returns
  /// Code::state if a file that no checkpoint has written has the name `path` or that of a part, or is still
  /// in another slot where look() has found it. Returns true if `path` is a link that the user has not named:
  /// the save must replace it, since it may lead to a copy that another run needs.
  Result<bool> check(storage::Target& target, const std::string& path, Mode mode, int ranks);
  [[nodiscard]] bool are_given() const { return are_given_; }
  /// Returns true if saves alternate over this place.
  [[nodiscard]] bool has(const std::string& path) const;
  /// Notes that a save has begun at `path`: the copy there, if there was one, is gone.
  void begun(std::int64_t generation, const std::string& path);
  /// Notes that the copy at `path` is committed. `parts` is the number of its parts that have files of their
  /// own.
  void committed(std::int64_t generation, const std::string& path, int parts = 0) {
    set({path, Has::copy, generation, parts});
  }
  /// Notes that the copy at `path` turned out not to be whole.
  void broken(const std::string& path);
  /// Returns all places where a copy may be.
  Result<std::vector<std::string>> candidates(storage::Target& target) const;

 private:
  /// In the order in which saves take the places.
  enum class Has { nothing, broken, copy };
  struct Slot {
    std::string path;
    Has has = Has::nothing;
    std::int64_t generation = 0;
    int own_parts = 0;  // parts below this have files that are known to be the copy's
  };
  Status check_parts(storage::Target& target, const std::string& path, int ranks) const;
  void set(const Slot& slot);

  std::string name_;
  std::int64_t keep_every_;
  bool are_given_;
  std::vector<Slot> slots_;
  std::set<std::string> foreign_;  // files that no checkpoint has written
  std::vector<std::string> failed_;
  std::int64_t highest_ = 0;  // the last generation that was begun
};

}  // namespace tailrace::checkpoint
