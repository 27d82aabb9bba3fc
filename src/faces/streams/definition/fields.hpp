// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/arrays/gathering.hpp"
#include "engine/operations/weighted_levels.hpp"
#include "engine/session/session.hpp"
#include "faces/streams/definition/layout_part.hpp"
#include "faces/streams/definition/parse.hpp"
#include "faces/streams/definition/placed_layout.hpp"
#include "faces/streams/definition/shaped_arrays.hpp"
#include "faces/streams/files/existing_files.hpp"
#include "faces/streams/operations.hpp"
#include "formats/codec/codec.hpp"
#include "formats/references/references.hpp"
#include "ground/layout/memory.hpp"

namespace tailrace::streams {

using SharedMap = std::shared_ptr<const layout::MemoryMap>;

/// A field of a stream that is written, on one compute rank.
struct Field {
  codec::FieldDefinition definition;
  std::shared_ptr<const PlacedLayout> layout;
  std::shared_ptr<const codec::Coordinates> coordinates;  // until the servers have been told
  std::weak_ptr<const codec::Coordinates> of_layout;      // the same, as long as the layout is there
  std::unique_ptr<node::Draw> drawn;  // on rank 0: memory of these; the first field has it
  layout::Allocation allocation;
  SharedMap map;    // for arrays allocated as defined
  Index count = 0;  // number of elements of a level that this rank owns
  ShapedArrays<SharedMap> shaped;
  std::unique_ptr<TimedField> timed;  // in streams with interval=, if the field has time
  bool is_put = false;                // a field without time: its values are on their way to the servers
  std::unique_ptr<node::Draw> values_drawn{};  // on rank 0: memory of the values
  std::vector<double> levels{};                // as they are put
  /// Makes one level of all, if over= names them: each rank has all levels of what it owns.
  std::unique_ptr<operations::Accumulator> over_levels{};
  std::unique_ptr<operations::WeightedLevels> weighted_levels{};  // in its place, with weights=
  /// The weights of levels, which the field of the weights has got when it was put.
  std::shared_ptr<std::vector<double>> level_weights{};
  std::shared_ptr<node::Draw> joining_drawn{};  // memory of weighted_levels
  std::unique_ptr<node::Draw> weights_drawn{};  // on rank 0: memory of servers for the weights that it has
  std::unique_ptr<node::Draw>
      level_weights_drawn{};          // memory of level_weights on this rank; the weights have it
  std::optional<double> no_weight{};  // of a field without time that was put: a value that can be no weight
  std::shared_ptr<const ByteVector> values{};  // likewise, in a stream whose definitions may change
  bool is_unrecorded = false;  // until the first step: the checkpoint's interval has begun without the field
  std::vector<std::string> dimensions{};  // as `layout` was at definition, before over= takes any
  std::vector<std::string> with_axes{};   // dimensions whose coordinates its layout had
  /// The section of the array that is put, or nullptr: all of it. `layout` is that of the section.
  std::shared_ptr<const LayoutPart> part{};

  /// Returns the map of an array of compute rank `rank`, which is this one. Without a shape, the array is
  /// allocated as defined. Code::argument if an array of this shape does not hold the field.
  Result<const SharedMap*> map_of(const ArrayShape* shape, int rank);
  /// Returns where the elements that this field has of a level lie in an array of compute rank `rank`, which
  /// is this one.
  [[nodiscard]] Result<layout::MemoryMap> map_in(const layout::Allocation& array, int rank) const;
  /// Returns the place of an accumulated element of `rank`, which is this one, as texts of errors name it.
  [[nodiscard]] std::string place_of(Index element, int rank) const;
  /// Returns true if each rank makes one level of all levels that it puts.
  [[nodiscard]] bool joins_levels() const { return over_levels || weighted_levels; }
  /// Makes one level of all levels of the array at `data`, in their order. joined() then returns the values,
  /// and joined_map() how they lie. An error names an element of `rank`, which is this one.
  Status join_levels(const layout::MemoryMap& map, const std::byte* data, int rank);
  [[nodiscard]] const std::byte* joined() const {
    return over_levels ? over_levels->values() : weighted_levels->values();
  }
  [[nodiscard]] const SharedMap& joined_map() const {
    return over_levels ? over_levels->map() : weighted_levels->map();
  }
};

/// The fields of a stream that is written, on one compute rank: defines each of them on all ranks, and tells
/// the servers of it.
class Fields final {
 public:
  /// All arguments are parts of the stream, or outlive it. `operations` is empty without interval=.
  Fields(session::Session& session, const StreamRequest& request, pipeline::StreamClient& client,
         std::optional<Operations>& operations)
      : session_(session), request_(request), client_(client), operations_(operations) {}

  /// Local. Makes the codec, before the first field.
  Status begin();
  /// Local. The stream goes on in the middle of an interval. `kept` has the accumulated values of its fields;
  /// define() takes those of its field out of it.
  void continue_within_interval(std::shared_ptr<operations::Kept> kept);
  /// Local. Before the first step the stream may turn out to go on in the file `last`, or in the middle of an
  /// interval: until then everything that the servers hear is kept, so that they can hear it again.
  void go_on_behind(LastFile last, bool is_within_interval);
  /// Returns the file in which the stream may go on.
  [[nodiscard]] const LastFile& last_file() const { return last_file_; }
  /// True before the first step of a stream that may go on in last_file(), or within an interval.
  [[nodiscard]] bool may_go_on() const { return may_go_on_; }

  /// All fields in another order, of which the file of the first step has the first `held`.
  struct Order {
    std::vector<std::size_t> fields;  // numbers
    std::size_t held = 0;
    std::vector<codec::GivenAttribute> attributes{};
    std::size_t held_attributes = 0;
    std::vector<std::vector<codec::Axis>> axes{};  // that each field brings
    std::unique_ptr<codec::Codec> codec{};         // with all of them
  };
  /// Local. Ends may_go_on(). The first step `goes_on` in last_file(), or begins another one. Returns the
  /// order in which the fields belong, or nothing if all of them hold as they are. Every rank gets the same.
  [[nodiscard]] std::optional<Order> decide_order(bool goes_on);
  /// Local. Makes the codec of the order.
  Status prepare_order(Order& order) const;
  /// Puts the fields into this order, and tells the servers those that hold, for a stream with a new number.
  /// The others begin with the file behind `file`.
  void take_order(Order order, const std::string& file);

  /// Local. Returns an error if nothing can be defined now.
  [[nodiscard]] Status may_define() const;
  /// Collective. Defines the next field. If this fails, the stream has no such field, and the program may
  /// define it again. Behind the first step the field begins with the next file.
  Status define(const std::string& field, const PlacedLayout* layout, int type, const std::string& options);
  /// Collective. Puts the field with this number, which has no time. Blocks until rank 0 has all values.
  /// Returns the same Status on every rank.
  Status put_without_time(int number, const void* data, const ArrayShape* shape, const std::string& call);
  /// Collective. Gives an attribute to the file (`of` is empty), to a field or to a dimension. On rank 0
  /// `given` has the values, which count for all ranks.
  Status add_attribute(const std::string& call, Result<codec::GivenAttribute> given);
  /// Returns Code::state if a field without time was not put: of those that hold, or `with_later` of all.
  [[nodiscard]] Status check_all_put(bool with_later = false) const;
  /// True if something was defined behind the first step that does not hold yet.
  [[nodiscard]] bool has_later() const { return held_fields_ < fields_.size() || attributes_are_later_; }
  /// True if the file of the last step has the field with this number, and the next steps of this file.
  [[nodiscard]] bool holds(int number) const { return static_cast<std::size_t>(number) < held_fields_; }
  /// Returns the file that was begun without what does not hold yet.
  [[nodiscard]] const std::string& file_without() const { return file_without_; }
  /// Tells the servers everything that is defined, for a stream with a new number. All of it holds from now
  /// on.
  void tell_all();
  /// Local. Puts the entries into the lane, in pieces if they are too large for it.
  void tell(const std::vector<pipeline::Told>& all);

  /// Returns the fields in the order of their definition.
  [[nodiscard]] std::vector<Field>& all() { return fields_; }
  [[nodiscard]] const std::vector<Field>& all() const { return fields_; }
  [[nodiscard]] const codec::Codec& codec() const { return *codec_; }
  /// Returns the index of a field in all(), or nothing.
  [[nodiscard]] std::optional<int> number_of(const std::string& field) const;
  /// Returns the names of all fields, in alphabetical order.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  Status prepare_field(FieldRequest& request, const PlacedLayout& layout, const ByteVector& vertical,
                       Field& out);
  Result<std::shared_ptr<const LayoutPart>> part_of(const FieldRequest& request, const PlacedLayout& layout,
                                                    const std::string& call, bool& was_refused);
  Status agree_on_part(const Status& mine, const std::string& call, const PlacedLayout& layout,
                       const std::shared_ptr<LayoutPart>& made, bool& was_refused);
  Status prepare_part(const layout::Section& section, const PlacedLayout& layout,
                      std::shared_ptr<LayoutPart>& out);
  [[nodiscard]] std::int64_t number_of_part(std::int64_t layout, const layout::Section& section) const;
  void name_dimensions(LayoutPart& part) const;
  static void take_part(const LayoutPart& part, FieldRequest& request);
  Status prepare_reduction(const FieldRequest& request, const PlacedLayout& layout, Field& out);
  Status prepare_weights(const FieldRequest& request, const PlacedLayout& layout, Field& out);
  Status prepare_weights_of_levels(const Field& weights, const PlacedLayout& layout, Field& out) const;
  void keep_weights(Field& field);
  Status take_weights(Field& field, const std::vector<arrays::OwnPart>& parts) const;
  [[nodiscard]] Status check_weights(const Field& weights) const;
  [[nodiscard]] bool is_weights(const std::string& field) const;
  Status prepare_timed(const FieldRequest& request, Field& out);
  Status prepare_joining(Field& out);
  /// Keeps those parts of a georeference that reference files need.
  Status add_axes(const std::vector<codec::Axis>& axes, Field& fresh) const;
  Status prepare_references(codec::FieldDefinition& fresh, const codec::Georeference& georeference);
  Status renew_codec();
  /// Returns the stream's definition with the attributes that were given.
  [[nodiscard]] codec::StreamDefinition with_attributes() const;
  /// Returns success if the staging memory takes the field that the codec knows by `number`, once memory for
  /// its pieces exists.
  [[nodiscard]] Status prepare_staging(const Field& field, int number) const;
  [[nodiscard]] Status draw_coordinates(Field& field) const;
  Status draw_values(const Field& field, node::Draw& drawn, ByteVector& whole) const;
  [[nodiscard]] Status check_without_time(const FieldRequest& request) const;
  void add_field(const std::string& name, Field field);
  Status take_attribute(const codec::GivenAttribute& fresh);
  void note_file_without();
  void tell_first(std::size_t fields, std::size_t attributes);
  void tell_field(std::size_t number);
  [[nodiscard]] bool is_unrecorded(const std::string& field) const;
  [[nodiscard]] std::vector<std::vector<codec::Axis>> axes_in(const std::vector<std::size_t>& order) const;
  [[nodiscard]] Status check_recorded(const Field& field) const;
  Status restore(const Field& field);
  [[nodiscard]] const std::string& name() const { return client_.name(); }

  session::Session& session_;
  const StreamRequest& request_;
  pipeline::StreamClient& client_;
  std::optional<Operations>& operations_;
  std::unique_ptr<codec::Codec> codec_;
  bool codec_is_ahead_ = false;                         // it may hold a field that some rank has refused
  std::unique_ptr<references::References> references_;  // of fields_, to check the next one; null: not made
  bool is_within_interval_ = false;                     // the stream goes on in the middle of an interval
  std::shared_ptr<operations::Kept> kept_;              // values of a checkpoint, for fields to be defined
  std::vector<Field> fields_;
  std::vector<codec::GivenAttribute> attributes_;
  std::map<std::string, int> numbers_;
  std::map<std::int64_t, std::shared_ptr<const PlacedLayout>> layouts_;  // of the fields, by their ids
  std::vector<std::shared_ptr<const LayoutPart>> layout_parts_;          // of the fields, each once
  std::size_t held_fields_ = 0;        // number of fields that the servers know
  bool attributes_are_later_ = false;  // the servers do not know all attributes
  std::string file_without_;
  LastFile last_file_;
  bool may_go_on_ = false;
  bool keeps_told_ = false;  // coordinates and values stay, since the servers may have to hear them again
};

}  // namespace tailrace::streams
