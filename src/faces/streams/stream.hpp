// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/session/session.hpp"
#include "faces/streams/definition/fields.hpp"
#include "faces/streams/definition/parse.hpp"
#include "faces/streams/files/existing_files.hpp"
#include "faces/streams/operations.hpp"
#include "faces/streams/resume/resume.hpp"

namespace tailrace::streams {

/// An output stream on a compute rank: it captures fields, and hears verdicts. include/tailrace.h has the
/// contract of each call.
class Stream final {
 public:
  /// With `resume` the stream goes on behind this position. Its next step has a greater lead, and in the end
  /// the files have the bytes that they would have if the run had never stopped. If the position is in the
  /// middle of an interval, `kept` has the accumulated values; define() takes those of its field out of it.
  static Result<std::unique_ptr<Stream>> create(session::Session& session, const std::string& pattern,
                                                const std::string& options,
                                                const std::optional<Position>& resume = {},
                                                std::shared_ptr<operations::Kept> kept = nullptr);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Status define(const std::string& field, const PlacedLayout* layout, int type, const std::string& options) {
    Status status = fields_.define(field, layout, type, options);
    status.is_ok() ? static_cast<void>(refused_.erase(field)) : note_refused(field);
    return status;
  }
  /// Local, on every rank. The definition of the field has failed. Until it succeeds, the stream may lack
  /// what it was made for, and close() writes no file without steps.
  void note_refused(const std::string& field) { refused_.insert(field); }
  /// Local, on every rank. The program has not closed the stream: close() writes no file without steps.
  void note_unclosed() { is_unclosed_ = true; }
  /// Collective, before the first step. Gives an attribute to the file (`of` is empty), to a field or to a
  /// dimension with a coordinate. What compute rank 0 gives counts.
  Status attribute(const std::string& of, const std::string& attribute, int type, std::int64_t count,
                   const void* values);
  Status text_attribute(const std::string& of, const std::string& attribute, const char* value);
  void begin(std::int64_t lead);
  void begin_at(double time);
  /// In a step: local; end() tells of errors. Before the first step, of a field without time: collective, see
  /// Fields::put_without_time().
  Status put(const std::string& field, const void* data, const ArrayShape* shape);
  Status end();
  Status wait(bool durable);
  Status close();
  /// Has close() leave the files as they are: the stream was never used.
  void abandon() { is_abandoned_ = true; }
  /// Returns true if the order of collective calls is broken: close() has more to do once the ranks have
  /// settled.
  [[nodiscard]] bool is_unsettled() const { return client_.is_unsettled(); }
  /// Keeps an error for end(), like the errors of begin() and put().
  void latch(const Status& status) { client_.latch(status); }
  [[nodiscard]] const std::string& name() const { return client_.name(); }
  [[nodiscard]] bool in_step() const { return client_.in_step(); }
  [[nodiscard]] bool accumulates() const { return operations_.has_value(); }

  /// Local. Returns where the stream stands: behind the last step that was ended. It is the same on every
  /// rank with two exceptions: put_lead if a rank leaves out puts of fields of which it owns nothing, and
  /// failures that a rank has not heard of.
  [[nodiscard]] Position position() const;
  /// Local. Returns true if this rank has heard for each step up to `position` that it is durable or has
  /// failed.
  [[nodiscard]] bool is_settled_through(const Position& position) const;
  /// Local. Returns `position` with all failures up to it that this rank has heard of by now, and with the
  /// last step that did not fail (put_lead).
  [[nodiscard]] Position with_failures(Position position) const;
  /// Local. Returns the first failure of a step up to `position` that this rank has heard of, or OK.
  [[nodiscard]] Status failure_up_to(const Position& position) const;
  /// Local. True if this rank has heard of a step that failed.
  [[nodiscard]] bool has_failed_step() const { return !client_.verdicts().failures().empty(); }
  /// Local. True if a call has told the program that a step has failed.
  [[nodiscard]] bool has_told_failure() const { return client_.verdicts().has_told_failure(); }

  /// A field and what it has accumulated in an interval that is not complete.
  struct State {
    std::string field;
    const PlacedLayout* layout = nullptr;  // of the elements, level after level
    const operations::Accumulator* accumulator = nullptr;
  };
  /// Local. Returns the state of each field, in the order of definition, if position() has an interval.
  /// Otherwise returns none.
  [[nodiscard]] std::vector<State> states() const;
  /// Local. Returns the rank whose puts count for position().interval.
  [[nodiscard]] int reference() const { return client_.definitions().reference(); }
  /// Local. Returns the error that this rank keeps for the end of the open interval.
  [[nodiscard]] const Status& kept_error() const { return client_.kept(); }
  /// Local. Returns, for each field, TimedField::calls(), or nothing if this rank owns none of its elements
  /// and need not put it.
  [[nodiscard]] std::vector<std::optional<std::int64_t>> calls() const;
  /// Returns true if records of a field have the dimension, which the program has named.
  [[nodiscard]] bool has_dimension(const std::string& name) const {
    return std::ranges::any_of(fields_.all(), [&](const Field& field) {
      return std::ranges::count(field.definition.dimensions, name) > 0;
    });
  }
  /// Local. Returns an error if nothing can be defined now.
  [[nodiscard]] Status may_define() const { return fields_.may_define(); }
  /// Local. Returns true if no field has time and none can be added, so that close() writes the file.
  [[nodiscard]] bool is_alone() const { return has_no_times() && !request_.pattern.depends_on_lead(); }
  /// Local. Returns true if the field is defined; in a step, if the file of this step has it.
  [[nodiscard]] bool wants(const std::string& name) const;
  [[nodiscard]] const std::string& name_of_field(std::size_t number) const {
    return fields_.all()[number].definition.name;
  }

 private:
  struct EndedStep {
    std::int64_t lead = 0;
    bool has_put = false;
  };

  Stream(session::Session& session, StreamRequest request, const std::string& pattern)
      : session_(session),
        request_(std::move(request)),
        client_(session.line(), session.topology().roster(), session.rank(), pattern,
                request_.definition.time),
        fields_(session_, request_, client_, operations_) {}
  Status choose_method();
  Status choose_handoff();
  Status open_handoff(const std::string& call);
  void look_for_method();
  Status try_method();
  Status prepare_operations(const std::optional<Position>& resume);
  [[nodiscard]] pipeline::Opening head() const;
  void continue_from(const Position& position, std::shared_ptr<operations::Kept> kept);
  Status capture(Field& field, int number, const std::byte* data,
                 const std::shared_ptr<const layout::MemoryMap>& map, bool may_lend);
  void put_in_step(const std::string& name, std::optional<int> number, const void* data,
                   const ArrayShape* shape);
  void accumulate(Field& field, const std::byte* data, const layout::MemoryMap& map);
  void begin_step(std::int64_t lead, const Status& wrong);
  Status fit_to_last_file(std::int64_t lead, bool is_lead_wrong);
  Status renew_for(std::int64_t lead);
  void renew();
  void begin_again();
  void note_left_behind(std::int64_t lead);
  [[nodiscard]] bool takes(int number) const;
  [[nodiscard]] Status not_in_this_file() const;
  [[nodiscard]] Status begin_timed(std::int64_t lead);
  void put_results();
  Status end_step();
  Status end_within();
  void note_missed(const Status& missed);
  void warn_of_open_interval() const;
  [[nodiscard]] bool has_no_times() const;
  /// True if a file without steps has all that the program meant: it may take the place of an earlier one.
  [[nodiscard]] bool may_write_alone() const { return !is_unclosed_ && refused_.empty(); }
  void warn_of_unwritten_fields() const;
  [[nodiscard]] const TimeAxis& times() const { return request_.definition.time; }
  [[nodiscard]] std::int64_t lead() const { return operations_ ? operations_->lead() : client_.lead(); }
  [[nodiscard]] Status check_put_again(int number);
  void tell(const pipeline::Told& told);
  void send_on();
  void stop_if_broken();
  [[nodiscard]] comm::Routine routine_of_wait(bool durable) const;
  pipeline::Counters& counters() { return session_.statistics().streams[name()]; }

  session::Session& session_;
  std::shared_ptr<void> lock_;           // on rank 0: the lock of all files that the stream may have
  std::vector<LeftBehind> left_behind_;  // on rank 0, with existing=continue
  StreamRequest request_;
  pipeline::StreamClient client_;
  std::string options_;
  std::string why_method_;  // with method=auto: why its method was taken
  pipeline::Handoff handoff_ = pipeline::Handoff::automatic;
  std::optional<Operations> operations_;  // with interval=
  Fields fields_;                         // behind the members to which it refers
  std::set<int> put_;                     // fields put in this step
  std::int64_t put_lead_ = 0;
  std::map<int, std::int64_t> put_steps_;  // at put_lead_: for each field, the last step that has it
  Uuid run_;                               // the same on all ranks
  Position from_;                          // where the stream continues; without steps: the beginning
  bool continues_ = false;
  Status untold_;         // for end(): an interval's end had no step; the same on all ranks
  bool has_put_ = false;  // the program has put a field in this step
  std::vector<EndedStep> ended_;
  std::size_t ended_before_ = 0;  // of them, before the definitions that hold
  std::optional<std::int64_t> last_lead_;
  bool is_abandoned_ = false;
  bool is_unclosed_ = false;       // the program ends without tr_stream_close
  std::set<std::string> refused_;  // fields whose definition has failed
  std::int64_t begins_with_ = 0;   // the first step with the definitions that hold
};

}  // namespace tailrace::streams
