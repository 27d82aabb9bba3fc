// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A small forecast of two fields that keeps every verdict it gets.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/index/index.hpp"
#include "mpi/scene.hpp"

namespace tailrace::fault {

/// Returns the directory for the files of this program.
const std::string& directory();

/// Runs `body(compute, label)` on the compute ranks of two sessions, one after the other: of three ranks
/// without servers, and of three ranks with two servers. Ranks of the world that are in neither only wait.
/// `options` are further settings of both.
void in_sessions(const std::function<void(MPI_Comm, const std::string&)>& body,
                 const std::string& options = "");

/// Runs one session of three compute ranks and `servers` servers, as in_sessions() does.
void session(int servers, const std::string& options,
             const std::function<void(MPI_Comm, const std::string&)>& body);

class Forecast {
 public:
  /// Collective. Makes a stream NAME.raw of fields t and u in directory(), or of another format.
  Forecast(MPI_Comm compute, const std::string& name, const std::string& format = "format=raw",
           const std::string& precision = "");
  ~Forecast() { close(); }
  Forecast(const Forecast&) = delete;
  Forecast& operator=(const Forecast&) = delete;

  [[nodiscard]] bool defined() const { return defined_; }
  [[nodiscard]] int rank() const { return scene::rank_of(compute_); }
  [[nodiscard]] tr_stream* stream() const { return stream_; }
  [[nodiscard]] scene::Array& array(const std::string& field) { return *arrays_.at(field); }
  [[nodiscard]] const void* data(const std::string& field) { return array(field).data(); }
  void fill(std::int64_t lead);
  void put(const std::string& field);
  /// Writes a correct step, and keeps its verdict.
  void good_step(std::int64_t lead);
  void end();
  void wait(int event);
  void close();

  [[nodiscard]] int verdicts() const { return static_cast<int>(texts_.size()); }
  [[nodiscard]] int first_code() const { return codes_.empty() ? TR_OK : codes_.front(); }
  [[nodiscard]] int last_code() const { return codes_.empty() ? TR_OK : codes_.back(); }
  [[nodiscard]] std::string first_text() const { return texts_.empty() ? "" : texts_.front(); }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }
  /// Collective. Returns true if all compute ranks have the same verdicts.
  [[nodiscard]] bool agreed() const;
  /// Collective. True if the index has these steps and the file has exactly their bytes.
  [[nodiscard]] bool holds_steps(const std::vector<std::int64_t>& leads) const;
  [[nodiscard]] std::vector<std::int64_t> steps_in_index() const;
  /// Returns true if the index says that no step will follow.
  [[nodiscard]] bool is_finished() const;

 private:
  void keep(int code);
  [[nodiscard]] Result<streams::IndexContents> index() const;

  MPI_Comm compute_;
  std::string path_;
  tr_stream* stream_ = nullptr;
  bool defined_ = true;
  std::map<std::string, std::unique_ptr<scene::Array>> arrays_;
  std::vector<int> codes_;
  std::vector<std::string> texts_;
};

}  // namespace tailrace::fault
