// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/shared/definition.hpp"

#include <algorithm>
#include <bit>

#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::shared {

Result<Access> read_mode(const std::string& mode) {
  Access access;
  const char kind = mode.empty() ? ' ' : mode.front();
  bool plus = false;
  bool known = kind == 'r' || kind == 'w' || kind == 'a';
  for (const char letter : mode.substr(mode.empty() ? 0 : 1)) {
    if (letter == '+' && !plus)
      plus = true;
    else if (letter == 'x' && kind == 'w' && !access.exclusive)
      access.exclusive = true;
    else if (letter != 'b')
      known = false;
  }
  if (!known) {
    return Status(Code::argument,
                  cat("the mode is \"r\", \"r+\", \"w\", \"w+\", \"a\" or \"a+\", with x behind "
                      "w for a file that must not exist, not \"",
                      mode, "\""));
  }
  access.reads = kind == 'r' || plus;
  access.writes = kind != 'r' || plus;
  access.creates = kind != 'r';
  access.empties = kind == 'w';
  access.appends = kind == 'a';
  return access;
}

namespace {

Status read_safety(Definition& definition, const std::string& name) {
  TR_TRY(take(parse_choice(name, {"none", "rename", "journal"}), definition.safety));
  if (definition.safety != Safety::rename || definition.access.empties || !definition.access.writes)
    return {};
  return {Code::settings,
          "this is for files that are begun anew (modes \"w\" and \"w+\"); what is changed in place "
          "needs safety=journal"};
}

Result<Bytes> read_page(const std::string& value) {
  const Result<Bytes> page = parse_bytes(value);
  TR_TRY(page.status());
  const bool is_power = *page > 0 && std::has_single_bit(static_cast<std::uint64_t>(*page));
  if (is_power && *page >= Definition::least_page && *page <= Definition::most_page) return *page;
  return Status(Code::settings, cat("a page is a power of 2 from ", size_text(Definition::least_page), " to ",
                                    size_text(Definition::most_page)));
}

constexpr OptionRow<Definition> shared_rows[] = {
    {{"page", "`1MiB`", "bytes", "page=64KiB",
      "size of a page, a power of 2 from 4 KiB to 1 GiB. Without it pages become smaller where memory is "
      "short"},
     [](auto& d, auto& t) { return take(read_page(t), d.page); }},
    {{"memory", "half of what is left", "bytes a node", "memory=2GiB",
      "the most that the pages of the file take on each node. Without it half of what the node's budget "
      "(`TAILRACE_MEMORY`) leaves"},
     [](auto& d, auto& t) { return take(parse_bytes(t), d.memory); }},
    {{"safety", "`none`", "", "safety=journal", "what a crash leaves: `none`, `journal` or `rename`"},
     read_safety},
};
constexpr OptionRow<Bytes> global_rows[] = {
    {{"page", "`1MiB`", "bytes", "page=64KiB", "size of a page, a power of 2 from 4 KiB to 1 GiB"},
     [](auto& page, auto& t) { return take(read_page(t), page); }},
};

}  // namespace

constexpr OptionTable<Definition> shared_options(shared_rows);
constexpr OptionTable<Bytes> global_options(global_rows);

Status load_page(storage::File& file, std::span<std::byte> bytes, Bytes offset) {
  const Result<Bytes> got = file.read(bytes, offset);
  TR_TRY(got.status());
  std::ranges::fill(bytes.subspan(static_cast<std::size_t>(*got)), std::byte{0});
  return {};
}

}  // namespace tailrace::shared
