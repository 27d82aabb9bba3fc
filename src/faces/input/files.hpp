// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "faces/input/committed_steps.hpp"
#include "faces/input/definition.hpp"
#include "faces/input/leads.hpp"

namespace tailrace::input {

/// Returns Code::settings if the file has times, and they are not leads of the stream: in another calendar,
/// times of a model in a stream of leads or the reverse, or no whole number of the stream's units.
Status check_times(const std::string& path, const sources::Inventory& inventory,
                   const FilesDefinition& files);

/// A file of an input stream, with its records by field and time. Immutable. Any thread may use it.
class OpenFile {
 public:
  /// `commits` is the state of the index when the source was opened; nullptr: the stream does not follow.
  OpenFile(const FilesDefinition& files, std::string path, std::shared_ptr<const sources::Source> source,
           std::shared_ptr<const CommittedSteps> commits = nullptr);

  [[nodiscard]] const sources::Source& source() const { return *source_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::shared_ptr<const CommittedSteps>& commits() const { return commits_; }
  /// Local. May block on storage. Returns the record of one level of a field at a lead; a record without a
  /// time is used for every lead. Among several records with the same headers the last one counts.
  /// Code::argument, listing what the file has, if it has no such record, or several different ones among
  /// which neither stream nor field chooses. Code::settings as of check_times(). If the file has the field
  /// but it was not read, returns the reason in Inventory::unread.
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
  std::shared_ptr<const CommittedSteps> commits_;
  Status times_;  // of check_times()
  std::map<std::string, Times> fields_;
};

/// The files of an input stream that a process has open: those that were used last. Any thread may call it.
class Files {
 public:
  /// `target` holds the indexes beside the files, which are read again and again if the stream follows.
  /// nullptr: no writer takes steps back.
  Files(const FilesDefinition& definition, Opener open, storage::Target* target = nullptr);

  /// Local. Returns the name of the file with the step at `lead`.
  Result<std::string> path_of(std::int64_t lead) const;
  /// Local. Blocks on storage, or until another thread has opened the file. Returns the file with the step at
  /// `lead`, opened anew if its index now has another version of the step. After an error the next call tries
  /// again.
  Result<std::shared_ptr<const OpenFile>> at(std::int64_t lead);
  /// Local. Blocks on storage for the index, but never until another thread has opened the file. Returns the
  /// steps that the index beside the file with the step at `lead` has now; nullptr if the stream does not
  /// follow.
  Result<std::shared_ptr<const CommittedSteps>> commits(std::int64_t lead);
  /// Local. Returns those of the steps `known` that belong to the file with the step at `lead` but are
  /// missing in `commits`, the steps of this file: the writer has taken them back.
  [[nodiscard]] std::vector<std::int64_t> taken_back(std::int64_t lead, const CommittedSteps& commits,
                                                     std::span<const std::int64_t> known) const;
  /// Local. Forgets the file with the step at `lead`, so that the next at() opens it anew.
  void forget(std::int64_t lead);

 private:
  /// A file. One thread opens it while others wait; its index can be read meanwhile.
  struct KeptFile {
    std::mutex opening;
    std::shared_ptr<const OpenFile> file;
    std::mutex looking;
    std::shared_ptr<const CommittedSteps> commits;
  };
  std::shared_ptr<KeptFile> kept(const std::string& path);
  Result<std::shared_ptr<const CommittedSteps>> look_at_index(KeptFile& entry, const std::string& path) const;
  [[nodiscard]] bool are_same(const std::shared_ptr<const CommittedSteps>& a,
                              const std::shared_ptr<const CommittedSteps>& b, std::int64_t lead) const;

  const FilesDefinition definition_;
  const Opener open_;
  storage::Target* const target_;
  Result<streams::Pattern> pattern_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<KeptFile>>> entries_;  // the last used first
};

}  // namespace tailrace::input
