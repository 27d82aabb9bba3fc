// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/options.hpp"

#include "ground/base/text.hpp"

namespace tailrace::checkpoint {

namespace {

constexpr OptionRow<Options> option_rows[] = {
    {{"keep", "`2`", "", "keep=3", "copies that take turns, 2 to 1000. Storage is needed for all of them"},
     [](auto& o, auto& t) { return take(parse_integer(t, 2, 1000), o.keep); }},
    {{"keep_every", "`0`", "", "keep_every=10",
      "with N each N-th generation stays for ever, as `NAME.gGENERATION`; 0: none"},
     [](auto& o, auto& t) { return take(parse_integer(t, 0, std::int64_t{1} << 40), o.keep_every); }},
    {{"mode", "`parallel`", "", "mode=local",
      "`parallel`: one file for a copy; `local`: one for each rank and a small one beside them"},
     [](auto& o, auto& t) {
       return take(parse_choice(t, {"parallel", "local"}), o.mode);
     }},
    {{"async", "`on`", "", "async=off",
      "`tr_checkpoint_end` returns once all is captured (`on`), or once it is committed (`off`)"},
     [](auto& o, auto& t) { return take(parse_boolean(t), o.async); }},
    {{"busy", "`wait`", "", "busy=drop",
      "a save that begins while the one before is still being written waits for it (`wait`), is left out "
      "(`drop`), "
      "or takes its place (`replace`)"},
     [](auto& o, auto& t) {
       return take(parse_choice(t, {"wait", "drop", "replace"}), o.busy);
     }},
    {{"capture", "`copy`", "", "capture=copy_on_write",
      "how an asynchronous save takes the data: before `tr_checkpoint_end` returns (`copy`), or while the "
      "program "
      "goes on (`copy_on_write`)"},
     [](auto& o, auto& t) {
       return take(parse_choice(t, {"copy", "copy_on_write"}), o.capture);
     }},
    {{"overwritten", "`refuse`", "", "overwritten=journal",
      "if an open file was [written over](#files-that-are-written-over), a save is refused (`refuse`), or "
      "old "
      "bytes are kept, so that the file can be brought back (`journal`)"},
     [](auto& o, auto& t) {
       return take(parse_choice(t, {"refuse", "journal"}), o.overwritten);
     }},
    {{"compress", "`none`", "", "compress=zstd:3",
      "`lz4`, `zstd` and `zstd:LEVEL` make blocks smaller while they are written; levels -7 to 19, without "
      "one 1"},
     [](auto& o, auto& t) { return take(parse_compression(t), o.compression); }},
};

}  // namespace

constexpr OptionTable<Options> option_table(option_rows);

Result<Options> parse_options(const std::string& text) {
  Options options;
  TR_TRY(option_table.read(text, options));
  return options;
}

}  // namespace tailrace::checkpoint
