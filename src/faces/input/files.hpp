// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "faces/input/commits.hpp"
#include "faces/input/definition.hpp"
#include "faces/input/leads.hpp"

namespace tailrace::input {

/// Returns Code::settings if the file has times, and counts them in another calendar than the stream.
Status check_calendar(const std::string& path, const sources::Inventory& inventory,
                      const FilesDefinition& files);

/// A file of an input stream, with its records by field and time. Immutable. Any thread may use it.
class OpenFile {
 public:
  /// `commits` are those by which the source has found its records; nullptr: nobody has asked.
  OpenFile(std::string path, std::shared_ptr<const sources::Source> source,
           std::shared_ptr<const Commits> commits = nullptr);

  [[nodiscard]] const sources::Source& source() const { return *source_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::shared_ptr<const Commits>& commits() const { return commits_; }
  /// Local. May block on storage. Returns the record of one level of a field, at a lead; a record without a
  /// time fits each. If the file has several whose headers say the same, the last one counts. Code::argument
  /// names what the file has, if it has no such record, or several that differ and neither the stream nor the
  /// field says which; Code::settings: check_calendar(). Of a field that the file has, and that is not read,
  /// the error says why (Inventory::unread).
  [[nodiscard]] Result<const sources::Record*> find(const FilesDefinition& files,
                                                    const FieldDefinition& field, std::int64_t lead,
                                                    double level) const;

 private:
  using Times = std::map<std::int64_t, std::vector<const sources::Record*>>;
  [[nodiscard]] Result<const sources::Record*> the_one(std::vector<const sources::Record*> records,
                                                       const FilesDefinition& files,
                                                       const FieldDefinition& field, std::int64_t lead,
                                                       double level) const;
  [[nodiscard]] Status with_unread(const std::string& name, const Status& status) const;
  [[nodiscard]] Status no_field(const std::string& name) const;
  [[nodiscard]] Status no_time(const FilesDefinition& files, const std::string& name, const Times& times,
                               std::int64_t lead) const;
  [[nodiscard]] Status no_level(const FieldDefinition& field,
                                const std::vector<const sources::Record*>& records, double level) const;

  std::string path_;
  std::shared_ptr<const sources::Source> source_;
  std::shared_ptr<const Commits> commits_;
  std::map<std::string, Times> fields_;
};

/// The files of an input stream that a process has open: those that it has used last. Any thread may call it.
class Files {
 public:
  /// `target` has the indexes beside the files, which are looked at if the stream follows. nullptr: nobody
  /// takes steps back.
  Files(const FilesDefinition& definition, Opener open, storage::Target* target = nullptr);

  [[nodiscard]] const FilesDefinition& definition() const { return definition_; }
  /// Returns the file with the step at `lead`, as its index tells it by now. A file that cannot be opened is
  /// tried again by the next call.
  Result<std::shared_ptr<const OpenFile>> at(std::int64_t lead);
  /// Returns the steps that the index beside that file tells by now; nullptr if the stream does not follow.
  /// Blocks on storage for that index, and never for a thread that opens the file.
  Result<std::shared_ptr<const Commits>> commits(std::int64_t lead);
  /// Returns those of the steps `known` that lie in the file with the step at `lead`, and that `commits`, of
  /// this file, do not tell: its writer has taken them back.
  [[nodiscard]] std::vector<std::int64_t> taken_back(std::int64_t lead, const Commits& commits,
                                                     std::span<const std::int64_t> known) const;
  /// Forgets a file that may have grown.
  void forget(std::int64_t lead);

 private:
  /// A file that one thread opens, while others wait for it. Its index is looked at meanwhile.
  struct Entry {
    std::mutex opening;
    std::shared_ptr<const OpenFile> file;
    std::mutex looking;
    std::shared_ptr<const Commits> commits;
  };
  Result<std::string> path_of(std::int64_t lead) const;
  std::shared_ptr<Entry> entry_of(const std::string& path);
  Result<std::shared_ptr<const Commits>> look_at_index(Entry& entry, const std::string& path) const;
  [[nodiscard]] bool are_same(const std::shared_ptr<const Commits>& a,
                              const std::shared_ptr<const Commits>& b, std::int64_t lead) const;

  const FilesDefinition definition_;
  const Opener open_;
  storage::Target* const target_;
  Result<streams::Pattern> pattern_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<Entry>>> entries_;  // the last used first
};

}  // namespace tailrace::input
