// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Checkpoints of texts.
#include <array>
#include <cstdio>
#include <vector>

#include "checkpoint/saved_field.hpp"
#include "files/fixture.hpp"

using namespace tailrace::files_test;

// Texts of 12 bytes do not divide a block of 2^20 bytes.
MPI_TEST(checkpoint, texts_of_several_blocks_come_back_compressed) {
  constexpr tr_index texts = 300'000;
  using Text = std::array<char, 12>;
  const std::string directory = fresh_directory("checkpoint-texts");
  for (const char* options : {"compress=zstd", "compress=lz4", "compress=none"}) {
    const Session session;
    tr_layout* layout = nullptr;
    CHECK_EQ(tr_layout_block(1, &texts, nullptr, &layout), TR_OK);
    tr_index begin = 0, end = 0;
    CHECK_EQ(tr_layout_bounds(layout, 0, &begin, &end), TR_OK);
    std::vector<Text> names(static_cast<std::size_t>(end - begin));
    for (std::size_t i = 0; i < names.size(); ++i)
      std::snprintf(names[i].data(), names[i].size(), "cell%07d",
                    static_cast<int>(begin) + static_cast<int>(i));
    std::vector<Text> loaded(names.size());
    tr_checkpoint* cp = create(directory + "/" + (options + 9), options);
    CHECK_EQ(tr_checkpoint_begin(cp, TR_SAVE, nullptr), TR_OK);
    tr_checkpoint_item(cp, "names", names.data(), TR_TEXT(12), layout);
    CHECK_EQ(tr_checkpoint_end(cp), TR_OK);
    CHECK_EQ(tr_checkpoint_begin(cp, TR_LOAD, nullptr), TR_OK);
    tr_checkpoint_item(cp, "names", loaded.data(), TR_TEXT(12), layout);
    CHECK_EQ(tr_checkpoint_end(cp), TR_OK);
    CHECK(loaded == names);
    if (size() > 1) {
      CHECK_EQ(tr_checkpoint_begin(cp, TR_SAVE, nullptr), TR_OK);
      tr_checkpoint_item(cp, "names", names.data(), rank() == 0 ? TR_TEXT(12) : TR_TEXT(8), layout);
      CHECK_EQ(tr_checkpoint_end(cp), TR_ERR_ORDER);
    }
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    tr_layout_free(&layout);
  }
  remove_directory(directory);
}
