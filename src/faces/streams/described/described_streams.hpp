// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/session/session.hpp"
#include "faces/streams/described/description.hpp"
#include "faces/streams/stream.hpp"

namespace tailrace::streams {

/// The streams of a description, which the program uses as if they were one. include/tailrace.h has the
/// contract of each call, at tr_streams_configure.
class DescribedStreams final {
 public:
  /// The streams belong to the face: it makes and closes them as those that the program makes itself.
  struct Face {
    std::function<Result<Stream*>(const std::string& pattern, const std::string& options)> make;
    std::function<Status(Stream*)> close;
  };

  static Result<std::unique_ptr<DescribedStreams>> configure(session::Session& session,
                                                             const std::string& path,
                                                             const std::string& options, Face face);

  Status define(const std::string& field, const PlacedLayout* layout, int type, const std::string& options);
  Status attribute(const std::string& of, const std::string& name, int type, std::int64_t count,
                   const void* values);
  Status text_attribute(const std::string& of, const std::string& name, const char* value);
  void begin(std::int64_t lead);
  void begin_at(double time);
  Status put(const std::string& field, const void* data, const ArrayShape* shape);
  Status end();
  Status wait(bool durable);
  Status close();
  /// Local. Returns true if a put of the field would go to a stream.
  [[nodiscard]] bool wants(const std::string& field) const;
  /// Keeps an error for the end() of this step, or if no stream has it, of the next step of the first stream.
  /// If the description has no streams, close() tells the error.
  void latch(const Status& status);
  /// Returns the path of the description.
  [[nodiscard]] const std::string& name() const { return description_.path(); }

 private:
  struct Member {
    const DescribedStream* described = nullptr;
    Stream* stream = nullptr;
    bool is_in_step = false;
    bool takes_attributes = false;
    std::set<std::string> axes{};  // dimensions that have coordinates

    /// True if the stream takes the field, by its name in the files: within a step if the file of this step
    /// has it.
    [[nodiscard]] bool takes(const std::string& field, bool in_step) const {
      return !in_step || (is_in_step && stream->wants(field));
    }
  };
  /// A field of the program in one of the streams.
  struct Use {
    std::size_t member = 0;
    const WrittenField* field = nullptr;
  };

  DescribedStreams(session::Session& session, Description description, Face face)
      : session_(session), description_(std::move(description)), face_(std::move(face)) {}
  Status make_streams(const std::string& call);
  Status close_streams();
  [[nodiscard]] Status check_definition(const std::string& field, const PlacedLayout& layout, int type,
                                        const std::string& options) const;
  [[nodiscard]] Stream* stream_for_error() const;
  [[nodiscard]] Status at(Place place, const Member& member, const Status& status) const;
  template <typename Begin>
  void begin_step(const Begin& begin, std::optional<std::int64_t> lead);
  template <typename Give>
  Status give_attribute(const std::string& call, const std::string& of, const std::string& attribute,
                        const Give& give);
  [[nodiscard]] const std::vector<Use>& uses_of(const std::string& field) const;
  [[nodiscard]] Status check_all_defined(bool of_alone = false) const;
  [[nodiscard]] Status check_late(const std::string& field) const;
  [[nodiscard]] Status check_alone() const;
  void warn_of_undefined(bool has_ended) const;

  session::Session& session_;
  Description description_;
  Face face_;
  std::vector<Member> members_;
  std::map<std::string, std::vector<Use>> asked_;  // the fields that the description names
  std::set<std::string> defined_;                  // the fields that the program has defined
  std::set<std::string> added_;                    // those of them that came behind the first step
  std::set<std::string> axes_;                     // dimensions of these that have coordinates
  Status incomplete_;                              // a field was not defined before the first step
  Status kept_;                                    // of a description without streams
  bool has_begun_ = false;
  bool in_step_ = false;
};

}  // namespace tailrace::streams
