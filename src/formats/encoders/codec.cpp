// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/encoders/codec.hpp"

#include <algorithm>
#include <deque>
#include <exception>

#include "formats/encoders/description.hpp"
#include "formats/encoders/encoded.hpp"
#include "formats/encoders/table.hpp"
#include "ground/base/text.hpp"

namespace tailrace::encoders {

namespace {

constexpr Bytes kUsualBound = 4096;  // added to twice the size of the values
constexpr Bytes kMostHead = Bytes{1} << 20;

/// Calls a function of the program. An exception from it becomes the failure of `out`.
template <typename Call>
Status run(tr_encoded& out, const Call& call) {
  int code = 0;
  try {
    code = call();
  } catch (const std::bad_alloc&) {
    out.fail(Code::memory, "out of memory");
  } catch (const std::exception& error) {
    out.fail(Code::format, error.what());
  } catch (...) {
    out.fail(Code::format, "the encoder threw something that is no std::exception");
  }
  return out.finish(code);
}

/// The answers of the program's functions for a field. Ranks that adopt the field get these answers, and do
/// not call the functions.
struct Answers {
  Bytes bound = 0;  // of a record
  // The head of files with all fields up to this one, as a change of the head without this field. Most
  // encoders only append to it.
  Bytes kept_first = 0, kept_last = 0;  // bytes that stay at the beginning and at the end
  ByteVector between;                   // bytes that replace the others
};

/// Sets the change that makes `head` from `before`.
void set_head(Answers& answers, const ByteVector& before, const ByteVector& head) {
  const auto both = static_cast<std::ptrdiff_t>(std::min(before.size(), head.size()));
  const auto first =
      std::mismatch(before.begin(), before.begin() + both, head.begin()).first - before.begin();
  const auto last =
      std::mismatch(before.rbegin(), before.rbegin() + (both - first), head.rbegin()).first - before.rbegin();
  answers.kept_first = first;
  answers.kept_last = last;
  answers.between.assign(head.begin() + first, head.end() - last);
}

/// The fields of one stream, and the program's answers about them.
struct Fields {
  std::deque<Description> described;  // a deque, because a Description must not move
  std::vector<Answers> answers;
  TimeAxis axis{};
};

class UserEncoder final : public codec::Encoder {
 public:
  UserEncoder(const Registered& registered, const Fields& fields)
      : registered_(registered), functions_(registered.functions), fields_(fields) {}
  ~UserEncoder() override {
    if (has_begun_ && functions_.thread_end != nullptr) functions_.thread_end(thread_, registered_.user);
  }
  UserEncoder(const UserEncoder&) = delete;
  UserEncoder& operator=(const UserEncoder&) = delete;

  Status encode(const codec::RecordKey& key, std::byte* values, Index count, ByteVector& out) override {
    offending_ = -1;
    const auto number = static_cast<std::size_t>(key.field);
    if (key.field < 0 || number >= fields_.described.size())
      return {Code::argument,
              cat("field number ", key.field, " was not defined; ", fields_.described.size(), " were")};
    const Description& description = fields_.described[number];
    if (count != description.field().elements())
      return {Code::argument, cat("field '", description.field().name, "': a record of ", count,
                                  " elements was given, ", description.field().elements(), " were defined")};
    const tr_record record = description.record(key, values);
    const std::size_t before = out.size();
    tr_encoded to(out, fields_.answers[number].bound);
    Status status = run(to, [&] {
      begin_thread();
      return functions_.encode(&record, &to, thread_, registered_.user);
    });
    if (status.is_ok() && out.size() == before)
      status = {Code::format, "the encoder returned 0 and appended no byte"};
    offending_ = to.offending() < count ? to.offending() : -1;
    return status.in(cat("format=", registered_.name, ": field '", record.field, "' at level ", record.level,
                         " (", record.level_type, "), ", fields_.axis.at(key.lead),
                         offending_ >= 0 ? cat(", value at index ", offending_) : ""));
  }
  [[nodiscard]] Index offending() const override { return offending_; }

 private:
  void begin_thread() {
    if (has_begun_) return;
    if (functions_.thread_begin != nullptr) thread_ = functions_.thread_begin(registered_.user);
    has_begun_ = true;
  }

  const Registered& registered_;
  const tr_encoder& functions_;
  const Fields& fields_;
  void* thread_ = nullptr;
  bool has_begun_ = false;
  Index offending_ = -1;
};

class UserCodec final : public codec::Codec {
 public:
  UserCodec(const Registered& registered, const codec::StreamDefinition& stream)
      : registered_(registered), stream_(stream) {
    fields_.axis = stream.time;
  }

  Status define(const codec::FieldDefinition& field) override {
    return add(field, [this](Bytes length) { return ask(2 * length + kUsualBound); });
  }
  [[nodiscard]] ByteVector prepared(int field) const override {
    const Answers& answers = fields_.answers[static_cast<std::size_t>(field)];
    return Packer()
        .put_text(at(field).name)
        .put(answers.bound)
        .put(answers.kept_first)
        .put(answers.kept_last)
        .put_bytes(answers.between)
        .take();
  }
  Status adopt(const codec::FieldDefinition& field, std::span<const std::byte> prepared) override {
    return add(field, [&](Bytes) { return unpack(field, prepared); });
  }
  /// The answers tell how the head changes by the field, which follows from the fields before it.
  Status define_again(const codec::FieldDefinition& field, const Codec& /*other*/, int /*number*/) override {
    return define(field);
  }
  [[nodiscard]] ByteVector head() const override { return head_; }
  [[nodiscard]] std::unique_ptr<codec::Encoder> encoder() const override {
    return std::make_unique<UserEncoder>(registered_, fields_);
  }
  [[nodiscard]] ElementType assembled_type(int field) const override { return at(field).type; }
  /// Returns a guess, 5 ns for a value: nobody knows how long the encoder that the program has registered
  /// takes.
  [[nodiscard]] double cost(int field) const override {
    return 1000.0 + 5.0 * static_cast<double>(at(field).elements());
  }
  [[nodiscard]] Bytes encoded_bound(int field) const override {
    return fields_.answers[static_cast<std::size_t>(field)].bound;
  }
  /// While the output grows or shrinks, memory holds it twice.
  [[nodiscard]] Bytes working_bytes(int field) const override { return encoded_bound(field); }

 private:
  static constexpr Bytes kMostBytes = Bytes{1} << 60;

  [[nodiscard]] const codec::FieldDefinition& at(int field) const {
    return fields_.described[static_cast<std::size_t>(field)].field();
  }

  /// Adds a field with the answers that `answer` returns. It is called with the size of a record's values.
  template <typename Answer>
  Status add(const codec::FieldDefinition& field, const Answer& answer) {
    TR_TRY(codec::check_field(field));
    if (field.information)
      return {Code::format,
              cat("format=", registered_.name, ": field '", field.name,
                  "': accuracy=auto is not for encoders of a program: give an accuracy, or choose "
                  "another format")};
    Bytes length = 0;
    if (__builtin_mul_overflow(field.elements(), size_of(field.type), &length) || length > kMostBytes)
      return {Code::argument, cat("field '", field.name, "': a record has more than 2^60 bytes")};
    fields_.described.emplace_back(stream_, field, static_cast<int>(fields_.answers.size()));
    const Status added = guarded([&]() -> Status {
      Result<Answers> answers = answer(length);
      TR_TRY(answers.status());
      ByteVector head(head_.begin(), head_.begin() + answers->kept_first);
      head.insert(head.end(), answers->between.begin(), answers->between.end());
      head.insert(head.end(), head_.end() - answers->kept_last, head_.end());
      fields_.answers.push_back(std::move(*answers));
      head_ = std::move(head);
      return {};
    });
    if (!added.is_ok()) fields_.described.pop_back();
    return added.in(cat("format=", registered_.name, ": field '", field.name, "'"));
  }

  /// Asks the program's functions about the last field. `usual` is the bound if the program has no function
  /// for it.
  Result<Answers> ask(Bytes usual) const {
    Answers answers;
    const Result<Bytes> bound = ask_bound(fields_.described.back().unput(), usual);
    TR_TRY(bound.status());
    const Result<ByteVector> head = ask_head();
    TR_TRY(head.status());
    answers.bound = *bound;
    set_head(answers, head_, *head);
    return answers;
  }

  /// Unpacks the answers that another rank has got for the field.
  Result<Answers> unpack(const codec::FieldDefinition& field, std::span<const std::byte> prepared) const {
    Unpacker in(prepared);
    const std::string name = in.get_text();
    Answers answers{in.get<Bytes>(), in.get<Bytes>(), in.get<Bytes>(), {}};
    const auto between = in.get_bytes();
    answers.between.assign(between.begin(), between.end());
    const auto before = static_cast<Bytes>(head_.size());
    const bool fits = answers.bound >= 1 && answers.bound <= kMostBytes && answers.kept_first >= 0 &&
                      answers.kept_last >= 0 && answers.kept_first <= before &&
                      answers.kept_last <= before - answers.kept_first;
    if (in.ok() && in.rest().empty() && name == field.name && fits) return answers;
    return Status(Code::corrupt, "what another rank has prepared is damaged or belongs to another field");
  }

  Result<Bytes> ask_bound(const tr_record& field, Bytes usual) const {
    const auto& function = registered_.functions.bound;
    if (function == nullptr) return usual;
    ByteVector nothing;
    tr_encoded out(nothing, 0, tr_encoded::What::bound);
    Bytes bound = 0;
    TR_TRY(run(out, [&] {
      bound = function(&field, &out, registered_.user);
      return 0;
    }));
    if (bound >= 1 && bound <= kMostBytes) return bound;
    return Status(Code::argument,
                  cat("its function `bound` returned ", bound, "; a record takes 1 to 2^60 bytes"));
  }

  Result<ByteVector> ask_head() const {
    const auto& function = registered_.functions.head;
    ByteVector head;
    if (function == nullptr) return head;
    std::vector<const tr_record*> fields;
    for (const Description& each : fields_.described) fields.push_back(&each.unput());
    tr_encoded out(head, kMostHead, tr_encoded::What::head);
    TR_TRY(run(out, [&] {
             return function(fields.data(), static_cast<std::int32_t>(fields.size()), &out, registered_.user);
           }).in("the head of its files"));
    return head;
  }

  const Registered& registered_;
  const codec::StreamDefinition stream_;
  Fields fields_;
  ByteVector head_;
};

}  // namespace

Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream) {
  const Registered* const registered = find(stream.format);
  if (registered == nullptr)
    return Status(Code::settings, cat("no encoder '", stream.format, "' is registered on this rank"));
  return std::unique_ptr<codec::Codec>(std::make_unique<UserCodec>(*registered, stream));
}

}  // namespace tailrace::encoders
