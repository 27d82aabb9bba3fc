// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <optional>

#include "checkpoint.hpp"
#include "ground/base/text.hpp"

#if TAILRACE_HAVE_JSON
#include <nlohmann/json.hpp>
#endif

namespace tailrace::cli {
namespace {

using checkpoint::Copy;
using checkpoint::CopyReader;
using checkpoint::ItemInfo;

/// The difference of one item between two copies.
struct Difference {
  std::string item;
  std::string text;  // the reason why the elements cannot be compared, or empty
  Index elements = 0;
  Index differing = 0;
  Index first = -1;
  std::vector<Index> shape;
  std::optional<double> largest;  // the largest distance, only of real and complex types; without NaN
};

template <typename T>
double distance(const std::byte* a, const std::byte* b) {
  T left, right;
  std::memcpy(&left, a, sizeof left);
  std::memcpy(&right, b, sizeof right);
  return std::abs(std::complex<double>(left) - std::complex<double>(right));
}

std::optional<double> distance(ElementType type, const std::byte* a, const std::byte* b) {
  switch (type) {
    case ElementType::f32:
      return distance<float>(a, b);
    case ElementType::f64:
      return distance<double>(a, b);
    case ElementType::c64:
      return distance<std::complex<float>>(a, b);
    case ElementType::c128:
      return distance<std::complex<double>>(a, b);
    default:
      return std::nullopt;
  }
}

/// Compares two runs of elements that begin with element `begin`, and adds their differences to `found`.
/// Elements are the same if their bytes are. So a NaN equals itself, and 0 differs from -0.
void compare(ElementType type, Index begin, const ByteVector& a, const ByteVector& b, Difference& found) {
  const auto element = static_cast<std::size_t>(size_of(type));
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) return;
  for (std::size_t at = 0; at < a.size(); at += element) {
    if (std::memcmp(a.data() + at, b.data() + at, element) == 0) continue;
    if (found.first < 0) found.first = begin + static_cast<Index>(at / element);
    ++found.differing;
    const std::optional<double> far = distance(type, a.data() + at, b.data() + at);
    if (far && !std::isnan(*far)) found.largest = std::max(found.largest.value_or(0), *far);
  }
}

class Comparison {
 public:
  Comparison(storage::Target& target, const Copy& left, const Copy& right)
      : left_(left), right_(right), left_reader_(target, left), right_reader_(target, right) {}

  Result<std::vector<Difference>> run() {
    std::vector<Difference> all;
    for (std::size_t i = 0; i < left_.directory.items.size(); ++i) {
      Result<Difference> difference = of_item(static_cast<int>(i));
      TR_TRY(difference.status());
      if (difference->differing > 0 || !difference->text.empty()) all.push_back(std::move(*difference));
    }
    for (const ItemInfo& item : right_.directory.items) {
      if (left_.find(item.name) >= 0) continue;
      Difference only;
      only.item = item.name;
      only.text = cat("only in ", right_.path);
      all.push_back(std::move(only));
    }
    return all;
  }

 private:
  Result<Difference> of_item(int number) {
    const ItemInfo& item = left_.directory.items[static_cast<std::size_t>(number)];
    Difference difference;
    difference.item = item.name;
    const int other = right_.find(item.name);
    if (other < 0) {
      difference.text = cat("only in ", left_.path);
      return difference;
    }
    const ItemInfo& counterpart = right_.directory.items[static_cast<std::size_t>(other)];
    if (item.type != counterpart.type || item.shape != counterpart.shape) {
      difference.text = cat(item.text(), " in ", left_.path, ", ", counterpart.text(), " in ", right_.path);
      return difference;
    }
    difference.elements = item.elements();
    difference.shape = item.shape;
    TR_TRY(compare_elements(item, number, other, difference));
    return difference;
  }

  Status compare_elements(const ItemInfo& item, int number, int other, Difference& difference) {
    const Index step = elements_at_once(item.type);
    for (Index begin = 0; begin < difference.elements; begin += step) {
      const Index count = std::min(step, difference.elements - begin);
      const auto bytes = static_cast<std::size_t>(count * size_of(item.type));
      a_.assign(bytes, std::byte{});
      b_.assign(bytes, std::byte{});
      TR_TRY(read_elements(left_reader_, left_, number, begin, count, a_.data()));
      TR_TRY(read_elements(right_reader_, right_, other, begin, count, b_.data()));
      compare(item.type, begin, a_, b_, difference);
    }
    return {};
  }

  const Copy& left_;
  const Copy& right_;
  CopyReader left_reader_;
  CopyReader right_reader_;
  ByteVector a_;
  ByteVector b_;
};

void print_text(const std::vector<Difference>& differences) {
  for (const Difference& each : differences) {
    if (!each.text.empty()) {
      std::puts(cat(each.item, ": ", each.text).c_str());
      continue;
    }
    std::string line = cat(each.item, ": ", each.differing, " of ", each.elements, " elements differ");
    if (!each.shape.empty()) line += cat(", the first at ", index_text(each.shape, each.first));
    if (each.largest) line += cat(", by ", *each.largest, " at most");
    std::puts(line.c_str());
  }
}

Status print_json([[maybe_unused]] const std::vector<Difference>& differences) {
#if TAILRACE_HAVE_JSON
  using Json = nlohmann::ordered_json;
  Json json = Json::array();
  for (const Difference& each : differences) {
    Json entry{{"item", each.item}};
    if (!each.text.empty()) {
      entry["what"] = each.text;
    } else {
      entry["elements"] = each.elements;
      entry["differing"] = each.differing;
      entry["first"] = Json::array();
      Index rest = each.first;
      for (std::size_t d = each.shape.size(); d-- > 0; rest /= each.shape[d])
        entry["first"].insert(entry["first"].begin(), rest % each.shape[d]);
      if (each.largest) entry["largest"] = *each.largest;
    }
    json.push_back(std::move(entry));
  }
  std::puts(json.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  return {};
#else
  return {Code::unsupported, "--json needs JSON, and this tailrace was built without nlohmann-json"};
#endif
}

int run_diff(const std::string& left, const std::string& right, bool json) {
  const std::shared_ptr<storage::Target> target = storage::default_target();
  const Result<Copy> a = newest_copy(*target, left);
  if (!a.is_ok()) return report_checkpoint("diff", a.status());
  const Result<Copy> b = newest_copy(*target, right);
  if (!b.is_ok()) return report_checkpoint("diff", b.status());
  const Result<std::vector<Difference>> differences = Comparison(*target, *a, *b).run();
  if (!differences.is_ok()) return report_checkpoint("diff", differences.status());
  if (json) {
    const Status status = print_json(*differences);
    if (!status.is_ok()) return report_checkpoint("diff", status);
  } else {
    print_text(*differences);
  }
  return differences->empty() ? Answer::fine : Answer::differs;
}

}  // namespace

void add_checkpoint_diff(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand("diff", "Compares the items of two copies, element by element");
  const auto left = std::make_shared<std::string>();
  const auto right = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  command->add_option("A", *left, "a checkpoint, of which the newest whole copy is taken, or one copy")
      ->required();
  command->add_option("B", *right, "another one")->required();
  command->add_flag("--json", *json, "as JSON");
  command->footer(
      "The copies may come from different numbers of ranks and layouts. Elements are the same if their "
      "bytes\n"
      "are: a NaN equals itself. Of real and complex items the largest absolute difference is told.\n\n"
      "Exit codes: 0 the same, 1 different, or damaged, 2 usage, or unreadable\n\n"
      "Examples:\n"
      "  tailrace checkpoint diff run/state.0 run/state.1\n"
      "  tailrace checkpoint diff reference/state run/state && echo 'bit for bit the same'");
  command->callback([left, right, json, &exit] {
    exit = answer_of("diff", [&] { return run_diff(*left, *right, *json); });
  });
}

}  // namespace tailrace::cli
