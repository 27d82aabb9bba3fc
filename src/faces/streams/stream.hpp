// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/session/session.hpp"
#include "faces/streams/definition/parse.hpp"
#include "faces/streams/files/look.hpp"
#include "faces/streams/operations.hpp"
#include "faces/streams/resume/resume.hpp"
#include "formats/codec/codec.hpp"
#include "formats/references/references.hpp"
#include "ground/layout/memory.hpp"

namespace tailrace::streams {

/// A layout as the faces hold it: the owners of elements, the arrays' allocation, and the place on the globe.
struct PlacedLayout {
  layout::Layout layout;
  std::int64_t id = 0;  // layouts are made collectively: the same number means the same layout on every rank
  std::vector<Index> halo;
  codec::Georeference georeference;
  std::vector<Index> own_indices;  // for layouts known in parts: what this rank owns, sent to the servers
  bool in_parts = false;
};

/// The caller's description of the array that it hands over.
struct ArrayShape {
  ElementType type = ElementType::f32;
  std::vector<Index> extents;  // C order, level axis included
  std::vector<Bytes> strides;  // empty = contiguous
};

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

  Status define(const std::string& field, const PlacedLayout* layout, int type, const std::string& options);
  void begin(std::int64_t lead);
  void put(const std::string& field, const void* data, const ArrayShape* shape);
  Status end();
  Status wait(bool durable);
  Status close();
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
  [[nodiscard]] const std::string& name_of_field(std::size_t number) const {
    return fields_[number].definition.name;
  }

 private:
  struct Field {
    codec::FieldDefinition definition;
    std::shared_ptr<const PlacedLayout> layout;
    std::shared_ptr<const codec::Coordinates> coordinates;  // until the servers have been told
    std::unique_ptr<node::Draw> drawn;  // on rank 0: memory of these; the first field has it
    layout::Allocation allocation;
    std::shared_ptr<const layout::MemoryMap> map;  // for arrays allocated as defined
    Index count = 0;
    std::vector<Index> last_extents;  // of the last array that came with its shape
    std::vector<Bytes> last_strides;
    std::shared_ptr<const layout::MemoryMap> last_map;
    std::unique_ptr<TimedField> timed;  // in streams with interval=
  };

  struct EndedStep {
    std::int64_t lead = 0;
    bool has_put = false;
  };

  Stream(session::Session& session, StreamRequest request, const std::string& pattern)
      : session_(session),
        request_(std::move(request)),
        client_(session.line(), session.topology().roster(), session.rank(), pattern) {}
  Status prepare_field(FieldRequest& request, const PlacedLayout& layout, const ByteVector& vertical,
                       Field& out);
  /// Keeps those parts of a georeference that reference files need.
  Status prepare_references(codec::FieldDefinition& fresh, const codec::Georeference& georeference);
  Status renew_codec();
  /// Returns success if the staging memory takes the field that the codec knows by `number`, once memory for
  /// its pieces exists.
  [[nodiscard]] Status prepare_staging(const Field& field, int number) const;
  [[nodiscard]] Status draw_coordinates(Field& field) const;
  void add_field(const std::string& name, Field field);
  Status prepare_operations(const std::optional<Position>& resume);
  [[nodiscard]] Status check_recorded(const Field& field) const;
  Status restore(const Field& field);
  [[nodiscard]] std::string place_of(const Field& field, Index element) const;
  [[nodiscard]] pipeline::Opening head() const;
  void continue_from(const Position& position);
  Result<std::shared_ptr<const layout::MemoryMap>> map_of(Field& field, const ArrayShape* shape);
  Status capture(Field& field, int number, const std::byte* data,
                 const std::shared_ptr<const layout::MemoryMap>& map, bool may_lend);
  void accumulate(Field& field, const std::byte* data, const layout::MemoryMap& map);
  [[nodiscard]] Status begin_timed(std::int64_t lead);
  void put_results();
  Status end_step();
  Status end_within();
  void note_missed(const Status& missed);
  void warn_of_open_interval() const;
  [[nodiscard]] std::int64_t lead() const { return operations_ ? operations_->lead() : client_.lead(); }
  [[nodiscard]] Status check_put_again(int number);
  void tell(const pipeline::Told& told);
  void tell_definitions(const std::vector<pipeline::Told>& all);
  void stop_if_broken();
  pipeline::Counters& counters() { return session_.statistics().streams[name()]; }

  session::Session& session_;
  std::shared_ptr<void> lock_;           // on rank 0: the lock of all files that the stream may have
  std::vector<LeftBehind> left_behind_;  // on rank 0, with existing=continue
  StreamRequest request_;
  pipeline::StreamClient client_;
  std::string options_;
  std::unique_ptr<codec::Codec> codec_;
  bool codec_is_ahead_ = false;                         // it may hold a field that some rank has refused
  std::unique_ptr<references::References> references_;  // of fields_, to check the next one; null: not made
  std::optional<Operations> operations_;                // with interval=
  std::shared_ptr<operations::Kept> kept_;              // values of a checkpoint, for fields to be defined
  std::vector<Field> fields_;
  std::map<std::string, int> numbers_;
  std::map<std::int64_t, std::shared_ptr<const PlacedLayout>> layouts_;  // of the fields, by their ids
  std::set<int> put_;                                                    // fields put in this step
  std::int64_t put_lead_ = 0;
  std::map<int, std::int64_t> put_steps_;  // at put_lead_: for each field, the last step that has it
  Uuid run_;                               // the same on all ranks
  Position from_;                          // where the stream continues; without steps: the beginning
  bool continues_ = false;
  Status untold_;         // for end(): an interval's end had no step; the same on all ranks
  bool has_put_ = false;  // the program has put a field in this step
  std::vector<EndedStep> ended_;
  std::optional<std::int64_t> last_lead_;
};

}  // namespace tailrace::streams
