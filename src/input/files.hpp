// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "input/definition.hpp"
#include "input/leads.hpp"

namespace tailrace::input {

/// Returns Code::settings if the file has times, and counts them in another calendar than the stream.
Status check_calendar(const std::string& path, const sources::Inventory& inventory,
                      const FilesDefinition& files);

/// A file of an input stream, with its records by field and time. Immutable. Any thread may use it.
class OpenFile {
 public:
  OpenFile(std::string path, std::shared_ptr<const sources::Source> source);

  [[nodiscard]] const sources::Source& source() const { return *source_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns the record of one level of a field, at a lead; a record without a time fits each. If the file
  /// has several, the last one counts. Code::argument names what the file has, if it has no such record, or
  /// those of several members or runs and the stream does not say which; Code::settings: check_calendar().
  [[nodiscard]] Result<const sources::Record*> find(const FilesDefinition& files,
                                                    const FieldDefinition& field, std::int64_t lead,
                                                    double level) const;

 private:
  using Times = std::map<std::int64_t, std::vector<const sources::Record*>>;
  [[nodiscard]] Result<const sources::Record*> the_one(const std::vector<const sources::Record*>& records,
                                                       const FilesDefinition& files, std::int64_t lead) const;
  [[nodiscard]] Status no_field(const std::string& name) const;
  [[nodiscard]] Status no_time(const FilesDefinition& files, const std::string& name, const Times& times,
                               std::int64_t lead) const;
  [[nodiscard]] Status no_level(const FieldDefinition& field,
                                const std::vector<const sources::Record*>& records, double level) const;

  std::string path_;
  std::shared_ptr<const sources::Source> source_;
  std::map<std::string, Times> fields_;
};

/// The files of an input stream that a process has open: those that it has used last. Any thread may call it.
class Files {
 public:
  Files(const FilesDefinition& definition, Opener open);

  [[nodiscard]] const FilesDefinition& definition() const { return definition_; }
  /// Returns the file with the step at `lead`. A file that cannot be opened is tried again by the next call.
  Result<std::shared_ptr<const OpenFile>> at(std::int64_t lead);
  /// Forgets a file that may have grown.
  void forget(std::int64_t lead);

 private:
  /// A file that one thread opens, while others wait for it.
  struct Entry {
    std::mutex opening;
    std::shared_ptr<const OpenFile> file;
  };

  const FilesDefinition definition_;
  const Opener open_;
  Result<streams::Pattern> pattern_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<Entry>>> entries_;  // the last used first
};

}  // namespace tailrace::input
