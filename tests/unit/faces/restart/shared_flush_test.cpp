// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// What copies of checkpoints need to bring a shared file back to the flushes that they have recorded, and
// what may go; and how a file stands to a recorded flush.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "faces/checkpoint/ranks.hpp"
#include "faces/checkpoint/slots.hpp"
#include "faces/restart/run_state.hpp"
#include "support/between.hpp"
#include "support/small_files.hpp"

namespace tailrace::restart {
namespace {

using checkpoint::Saving;
using journal::flush_of_three;
using journal::with_three_flushes;

/// The flush of this generation of the file of with_three_flushes().
SharedFlush flush(std::int64_t generation, const std::string& path = "f", std::uint64_t open = 7) {
  return {path, generation, 100, 0, open};
}

/// How far a save has come.
enum class Came { has_begun, is_sealed, is_committed };

/// Saves a copy that has recorded the flushes.
void save(storage::Target& target, const std::string& copy, const std::vector<SharedFlush>& flushes,
          Came came = Came::is_committed) {
  checkpoint::RankData data(0, 1);
  data.fill(1);
  Saving saving(target, {copy, checkpoint::Mode::parallel, {Uuid::random(), 1}, {}, 1'700'000'000}, 0, 1,
                data.items());
  saving.place({saving.part_bytes()});
  Recorded recorded;
  recorded.shared = flushes;
  saving.set_outputs(recorded.pack());
  EXPECT_TRUE(saving.write().is_ok());
  EXPECT_TRUE(came < Came::is_sealed || saving.seal().is_ok());
  EXPECT_TRUE(came < Came::is_committed || saving.commit().is_ok());
  EXPECT_TRUE(saving.close().is_ok());
}

/// Returns the lowest generation that is said to be needed when checkpoint `a` with these copies is cleaned
/// up, or 0 if nothing may go.
std::int64_t needed(storage::Target& target, const std::vector<std::string>& copies = {"a.0", "a.1"}) {
  const Result<std::vector<UselessFlushFiles>> useless = useless_flush_files(target, "a", copies);
  EXPECT_TRUE(useless.is_ok()) << useless.status().text();
  EXPECT_LE(useless->size(), 1U);
  if (useless->empty()) return 0;
  const UselessFlushFiles& of = useless->front();
  EXPECT_EQ(of.open, 7U);
  EXPECT_EQ(std::ssize(of.files), of.needed - 1) << "one undo file of each generation before";
  return of.needed;
}

TEST(shared_flush, the_oldest_flush_of_any_copy_is_needed) {
  const auto target = with_three_flushes({"a"});
  save(*target, "a.0", {flush(4)});
  EXPECT_EQ(needed(*target), 4);
  save(*target, "a.1", {flush(3)});
  EXPECT_EQ(needed(*target), 3);
}

TEST(shared_flush, flushes_of_other_opens_are_not_compared) {
  const auto target = with_three_flushes({"a"});
  save(*target, "a.0", {flush(2, "f", 6)});
  EXPECT_EQ(needed(*target), 0) << "no copy has recorded this content";
  save(*target, "a.1", {flush(3)});
  EXPECT_EQ(needed(*target), 3);
}

TEST(shared_flush, two_checkpoints_of_one_file_need_the_flushes_of_both) {
  const auto target = with_three_flushes({"a", "b"});
  save(*target, "a.0", {flush(4)});
  save(*target, "a.1", {flush(4)});
  save(*target, "b.0", {flush(2)});
  EXPECT_EQ(needed(*target), 2);
  save(*target, "b.0", {flush(3)});
  EXPECT_EQ(needed(*target), 3);
}

/// Its first save with the file may be under way, or its copies with the file lie elsewhere.
TEST(shared_flush, nothing_goes_while_no_copy_of_another_checkpoint_has_recorded_the_file) {
  const auto target = with_three_flushes({"a", "b"});
  save(*target, "a.0", {flush(4)});
  save(*target, "b.0", {flush(2, "f", 6)});
  save(*target, "b.1", {});
  EXPECT_EQ(needed(*target), 0);
  ASSERT_EQ(absent_checkpoints(*target, "a", {"a.0"})->size(), 1U);
  save(*target, "b.1", {flush(3)});
  EXPECT_EQ(needed(*target), 3);
  EXPECT_TRUE(absent_checkpoints(*target, "a", {"a.0"})->empty());
  EXPECT_EQ(forget_checkpoint(*target, "f", "b").code(), Code::state);
  save(*target, "b.1", {});
  const Status forgotten = forget_checkpoint(*target, "f", "b");
  EXPECT_TRUE(forgotten.is_ok()) << forgotten.text();
  EXPECT_EQ(needed(*target), 4);
}

/// Another checkpoint has recorded it while it was open, and its saves go on.
TEST(shared_flush, a_checkpoint_that_records_a_closed_file_keeps_its_undo_files) {
  const auto target = with_three_flushes({"a"});
  save(*target, "a.0", {flush(4)});
  const SharedFlush closed = flush(2);
  {
    const auto held = journal::lock_flushed(*target, "f");
    EXPECT_EQ(claim_closed(*target, closed, "b").code(), Code::state);
  }
  EXPECT_EQ(claim_closed(*target, flush(2, "f", 8), "b").code(), Code::state);
  EXPECT_EQ(needed(*target), 4);
  const Status claimed = claim_closed(*target, closed, "b");
  ASSERT_TRUE(claimed.is_ok()) << claimed.text();
  EXPECT_EQ(needed(*target), 0) << "before the copy is sealed";
  save(*target, "b.0", {closed});
  EXPECT_EQ(needed(*target), 2);
  // No lock for one that has claimed it before.
  const auto held = journal::lock_flushed(*target, "f");
  EXPECT_TRUE(claim_closed(*target, closed, "b").is_ok());
  EXPECT_EQ((*journal::read_kept(*target, "f"))->claims, (std::vector<std::string>{"a", "b"}));
}

/// Nobody brings it there, and the other outputs must not wait for it.
TEST(shared_flush, a_file_whose_restore_cannot_be_completed_stays_as_it_is) {
  for (const bool is_announced : {false, true}) {
    const auto target = with_three_flushes({"a"});
    const auto all = *journal::find_undo_files(*target, journal::flushed_path("f"));
    journal::Flushed back{2, 100, 0, 7, 5};
    if (is_announced) back.announced.emplace();
    ASSERT_TRUE(journal::prepare_flushed(*target, "f", back).is_ok() &&
                journal::commit_flushed(*target, "f").is_ok());
    EXPECT_EQ(look_at_shared_files(*target, {"."}, {flush(2)}).at(0).outlook, Outlook::ahead);
    ASSERT_TRUE(target->remove(all.front().path).is_ok());
    const OutputState state = look_at_shared_files(*target, {"."}, {flush(2)}).at(0);
    EXPECT_FALSE(state.leads_back);
    EXPECT_NE(state.text.find("undo files that this needs are gone"), std::string::npos) << state.text;
    // A copy that is newer than the flush to which it was to go back.
    const std::string newer = look_at_shared_files(*target, {"."}, {flush(3)}).at(0).text;
    EXPECT_NE(newer.find("on its way back to an earlier flush"), std::string::npos) << newer;
    EXPECT_EQ(restore_shared_file(*target, "f").status().code(), is_announced ? Code::ok : Code::corrupt);
    EXPECT_TRUE(journal::bytes_in(*target, "f") == flush_of_three(4));
    EXPECT_EQ(*target->exists("f.undo"), !is_announced);
  }
}

/// tr_checkpoint_create_registered() with files: nobody finds the copies of `b` by its name.
TEST(shared_flush, nothing_goes_while_copies_of_another_checkpoint_lie_in_given_places) {
  const auto target = with_three_flushes({"a", "b"});
  save(*target, "a.0", {flush(4)});
  save(*target, "elsewhere", {flush(2)});
  EXPECT_EQ(needed(*target), 0);
  // The same of its own copies, which it knows.
  const auto own = with_three_flushes({"a"});
  save(*own, "here", {flush(4)});
  save(*own, "there", {flush(3)});
  EXPECT_EQ(needed(*own, {"here", "there"}), 3);
}

TEST(shared_flush, a_file_is_the_same_by_all_spellings_of_its_path) {
  for (const char* spelling : {"./f", ".//f"}) {
    const auto target = with_three_flushes({"a", "b"});
    save(*target, "a.0", {flush(4)});
    save(*target, "a.1", {flush(3, spelling)});
    save(*target, "b.0", {flush(4)});
    EXPECT_EQ(needed(*target), 3) << spelling;
    save(*target, "b.0", {flush(2, spelling)});
    EXPECT_EQ(needed(*target), 2) << spelling;
  }
}

/// Another checkpoint may be saving: what its copy will have recorded cannot be read yet.
TEST(shared_flush, nothing_goes_while_a_save_of_another_checkpoint_is_under_way) {
  const auto target = with_three_flushes({"a", "b"});
  save(*target, "a.0", {flush(4)});
  save(*target, "b.0", {flush(4)});
  EXPECT_EQ(needed(*target), 4);
  save(*target, "b.1", {flush(2)}, Came::has_begun);
  EXPECT_EQ(needed(*target), 0);
  save(*target, "b.1", {flush(2)}, Came::is_sealed);
  EXPECT_EQ(needed(*target), 2) << "a load takes a whole copy, also if it was not committed";
}

TEST(shared_flush, nothing_goes_that_a_restore_under_way_needs) {
  const auto target = with_three_flushes({"a"});
  save(*target, "a.0", {flush(4)});
  for (const std::int64_t to : {2, 3, 4}) {
    EXPECT_TRUE(journal::prepare_flushed(*target, "f", {to, 100, 0, 7, 5}).is_ok());
    EXPECT_TRUE(journal::commit_flushed(*target, "f").is_ok());
    EXPECT_EQ(needed(*target), to < 4 ? 0 : 4);
  }
}

/// Nobody but the user knows that copies of `b` are gone, and do not lie elsewhere.
TEST(shared_flush, a_checkpoint_that_was_removed_for_good_keeps_undo_files_until_it_is_forgotten) {
  const auto target = with_three_flushes({"a", "b"});
  save(*target, "a.0", {flush(4)});
  save(*target, "b.0", {flush(2)});
  EXPECT_TRUE(absent_checkpoints(*target, "a", {"a.0"})->empty());
  EXPECT_EQ(forget_checkpoint(*target, "f", "b").code(), Code::state);
  EXPECT_EQ(forget_checkpoint(*target, "f", "c").code(), Code::argument);
  ASSERT_TRUE(target->remove("b.0").is_ok());
  EXPECT_EQ(needed(*target), 0);
  const auto absent = absent_checkpoints(*target, "a", {"a.0", "a.1"});
  ASSERT_EQ(absent->size(), 1U);
  EXPECT_EQ(absent->front().name, "b");
  EXPECT_EQ(absent->front().path, "f");
  {
    const auto held = journal::lock_flushed(*target, "f");
    EXPECT_EQ(forget_checkpoint(*target, "f", "b").code(), Code::state);
  }
  {
    const auto runs = target->lock(checkpoint::lock_path("b"));
    EXPECT_EQ(forget_checkpoint(*target, "f", "b").code(), Code::state) << "its program may save at any time";
  }
  EXPECT_EQ(needed(*target), 0);
  const Status forgotten = forget_checkpoint(*target, "f", "b");
  EXPECT_TRUE(forgotten.is_ok()) << forgotten.text();
  EXPECT_EQ(needed(*target), 4);
  EXPECT_TRUE(standing_of(*target, flush(2))->leads_back) << "until the next commit or prune";
  // The last one.
  ASSERT_TRUE(target->remove("a.0").is_ok() && forget_checkpoint(*target, "f", "a").is_ok());
  EXPECT_EQ(*target->list("."), std::vector<std::string>{"f"});
  EXPECT_TRUE(journal::bytes_in(*target, "f") == flush_of_three(4));
}

/// A program begins the file anew while a commit looks for what may go: the undo files are other ones then.
TEST(shared_flush, nothing_goes_of_a_file_that_is_begun_anew_meanwhile) {
  int calls = 1, refused = 0;
  for (int at = 1; at <= calls; ++at) {
    const auto below = with_three_flushes({"a"});
    save(*below, "a.0", {flush(4)});
    bool is_new = false;
    storage::Between target(below,
                            {{at, [&] {
                                EXPECT_TRUE(journal::give_up_kept(*below, "f").is_ok());
                                EXPECT_TRUE(journal::write_kept(*below, "f", {8, 4, 0, {"a"}}).is_ok());
                                for (const std::int64_t generation : {1, 2, 3})
                                  journal::write_over(*below, generation, 0, 10, 'n');
                                is_new = true;
                              }}});
    const auto useless = useless_flush_files(target, "a", {"a.0"});
    calls = std::max(calls, target.calls());
    ASSERT_TRUE(useless.is_ok()) << useless.status().text();
    refused += useless->empty() ? 1 : 0;
    // What is left to remove is then of the file as it was.
    for (const UselessFlushFiles& of : *useless) EXPECT_EQ(of.open, 7U);
  }
  EXPECT_GT(refused, 5);
}

/// The look finds a way back, and then a commit removes it.
TEST(shared_flush, a_restore_whose_way_has_gone_since_the_look_says_so_and_changes_nothing) {
  const auto target = with_three_flushes();
  const SharedFlush to = flush(2);
  EXPECT_TRUE(standing_of(*target, to)->leads_back);
  EXPECT_TRUE(look_at_shared_files(*target, {"."}, {to}).at(0).leads_back);
  const auto all = *journal::find_undo_files(*target, journal::flushed_path("f"));
  ASSERT_TRUE(journal::raise_lowest_kept(*target, "f", 7, 4).is_ok());
  for (const journal::UndoName& each : all) EXPECT_TRUE(target->remove(each.path).is_ok());
  const Result<bool> restored = restore_shared_file(*target, "f", &to);
  ASSERT_TRUE(restored.is_ok()) << restored.status().text();
  EXPECT_FALSE(*restored);
  EXPECT_TRUE(journal::bytes_in(*target, "f") == flush_of_three(4));
  const OutputState state = look_at_shared_files(*target, {"."}, {to}).at(0);
  EXPECT_EQ(state.outlook, Outlook::stays);
  EXPECT_NE(state.text.find("undo files are gone"), std::string::npos) << state.text;
}

/// Size and both ends are as recorded, but nobody has kept what was written between them.
TEST(shared_flush, a_file_without_a_way_back_is_never_taken_for_the_recorded_one) {
  for (const bool is_left_open : {false, true}) {
    const auto target = with_three_flushes();
    ASSERT_TRUE(journal::give_up_kept(*target, "f").is_ok());
    ASSERT_TRUE(!is_left_open || (journal::prepare_flushed(*target, "f", {4, 100, 0, 9}).is_ok() &&
                                  journal::commit_flushed(*target, "f").is_ok()));
    const Result<FlushStanding> standing = standing_of(*target, flush(4));
    ASSERT_TRUE(standing.is_ok()) << standing.status().text();
    EXPECT_FALSE(standing->is_there || standing->leads_back);
    EXPECT_EQ(standing->is_left_open, is_left_open);
    EXPECT_NE(standing->text.find(is_left_open ? "opened it anew" : "was begun anew"), std::string::npos)
        << standing->text;
  }
  // Somebody has removed the file, but not what its killed program has left.
  const auto target = with_three_flushes();
  ASSERT_TRUE(journal::prepare_flushed(*target, "f", {4, 100, 0, 7}).is_ok() &&
              journal::commit_flushed(*target, "f").is_ok() && target->remove("f").is_ok());
  const Result<FlushStanding> standing = standing_of(*target, flush(4));
  ASSERT_TRUE(standing.is_ok()) << standing.status().text();
  EXPECT_FALSE(standing->is_there || standing->leads_back);
  EXPECT_EQ(standing->text, "is not there");
}

}  // namespace
}  // namespace tailrace::restart
