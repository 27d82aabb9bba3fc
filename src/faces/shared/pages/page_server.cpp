// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/shared/pages/page_server.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <utility>

#include "faces/files/node_servers.hpp"
#include "faces/shared/elements/far_elements.hpp"
#include "faces/shared/elements/node_elements.hpp"
#include "faces/shared/pages/far_pages.hpp"
#include "faces/shared/pages/node_pages.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/identity.hpp"

namespace tailrace::shared {

/// The parts of a server with which it works for the ranks of its node.
struct ServerPlace {
  exchange::ProgressEngine& progress;
  executor::Threads& threads;
  node::Budget& budget;
  std::function<void()> wake;  // makes the server's loop look again; any thread
};

namespace {

/// The group that has handed over memory, and the number of its file or array.
struct Owners {
  Owners(Unpacker& in, const exchange::Roster& roster)
      : line(in.get<comm::LineNumber>()),
        epoch(in.get<std::uint64_t>()),
        ranks(files::unpack_ranks(in, roster.compute_transport)) {}
  [[nodiscard]] exchange::Requests::Peers peers() const {
    return {line, std::make_shared<const comm::Members>(ranks)};
  }
  /// Returns for each rank of the group the lowest rank of its node. Ranks are numbered as in the group.
  [[nodiscard]] std::vector<int> lowest(const session::Topology& topology) const {
    std::map<int, int> by_node;
    std::vector<int> all;
    for (const int rank : ranks)
      all.push_back(by_node.try_emplace(topology.node_of(rank), static_cast<int>(all.size())).first->second);
    return all;
  }

  comm::LineNumber line;
  std::uint64_t epoch;
  std::vector<int> ranks;  // the group's ranks, by their numbers in the transport
};

class ServedElements final : public node::MemoryTaker::Work {
 public:
  ServedElements(const ServerPlace& place, const Owners& owners, const NodeElements::Plan& plan,
                 std::unique_ptr<node::NodeMemory> memory)
      : elements_(
            NodeElements::attach(place.progress.board().transport(), plan, place.budget, std::move(memory))),
        far_(place.progress, owners.peers(), owners.epoch, place.threads,
             [this](shared::Work work, const Named& named, std::span<const std::byte> values,
                    ByteVector& answer) { return work_on(*elements_, work, named, values, answer); }) {}
  std::optional<ByteVector> end(bool /*does_hear*/) override { return Packer().put(Bytes{0}).take(); }

 private:
  std::unique_ptr<NodeElements> elements_;
  FarElements far_;
};

/// A file that a server reads. A thread opens and closes it: if storage hangs, the server's work for other
/// files goes on.
class ServedFile {
 public:
  ServedFile(const ServerPlace& place, storage::Target& target, std::string path, storage::FileNumber number)
      : target_(target), path_(std::move(path)), number_(number), wake_(place.wake) {}
  /// open() and close() are jobs of one key, in this order. Neither throws.
  void open() {
    status_ = guarded([this]() -> Status {
      Result<std::unique_ptr<storage::File>> file = target_.open(path_, storage::OpenMode::read);
      TR_TRY(file.status());
      file_ = std::move(*file);
      if (storage::number_of(path_) == number_) return {};
      return {Code::unsupported, cat(path_, " names another file on this server than on its compute ranks")};
    });
    is_over_ = true;
    wake_();
  }
  void close() {
    if (file_ != nullptr) (void)guarded([this] { return file_->close(); });  // nothing was written
    file_ = nullptr;
    is_over_ = true;
    wake_();
  }
  /// True once the last job is over. The caller may use status() and file() only then. begin() announces the
  /// next job.
  [[nodiscard]] bool is_over() const { return is_over_; }
  void begin() { is_over_ = false; }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] storage::File& file() const { return *file_; }

 private:
  storage::Target& target_;
  const std::string path_;
  const storage::FileNumber number_;
  const std::function<void()> wake_;
  Status status_;
  std::unique_ptr<storage::File> file_;
  std::atomic<bool> is_over_{false};
};

/// Pages of a file that a server gives to other nodes. The server reads the file and never writes to it,
/// since the compute ranks have the undo files for a crash. Where a page can make room only once it is
/// stored, the server asks the compute ranks to store it, and the request waits.
class ServedPages final : public node::MemoryTaker::Work {
 public:
  ServedPages(const ServerPlace& place, const Owners& owners, std::shared_ptr<ServedFile> file,
              const std::vector<int>& lowest)
      : place_(place),
        owners_(owners),
        file_(std::move(file)),
        key_(place.threads.new_own_key()),
        ranks_(lowest) {}
  ~ServedPages() override {
    far_.reset();
    if (!is_closing_) close();
  }
  Status begin(Bytes page, Bytes memory, int first, std::unique_ptr<node::NodeMemory> taken);
  std::optional<Status> begun() override;
  std::optional<ByteVector> end(bool does_hear) override;

 private:
  void close();
  [[nodiscard]] Disk disk();
  [[nodiscard]] Served served();

  const ServerPlace place_;
  const Owners owners_;
  const std::shared_ptr<ServedFile> file_;
  const executor::Key key_;
  bool is_closing_ = false;
  const exchange::NodeRanks ranks_;
  Bytes page_ = 0;
  std::unique_ptr<NodePages> pages_;
  std::unique_ptr<FarPages> far_;
};

Status ServedPages::begin(Bytes page, Bytes memory, int first, std::unique_ptr<node::NodeMemory> taken) {
  page_ = page;
  Result<std::unique_ptr<NodePages>> pages = NodePages::attach(
      place_.progress.board().transport(), {page, memory, std::make_shared<PageDeal>(page, ranks_)},
      ranks_.seat(first).ranks, place_.budget, disk(), std::move(taken));
  TR_TRY(pages.status());
  pages_ = std::move(*pages);
  place_.threads.submit(key_, [file = file_] { file->open(); });
  return {};
}

/// Begins to serve once the file is open. No rank asks for pages before the rank that handed them over has
/// heard that the work has begun.
std::optional<Status> ServedPages::begun() {
  if (!file_->is_over()) return std::nullopt;
  TR_TRY(file_->status());
  far_ =
      std::make_unique<FarPages>(place_.progress, owners_.peers(), owners_.epoch, place_.threads, served());
  return Status();
}

/// Ends the work once the file is closed. The ranks may remove the file when they hear of the end: the server
/// has closed it by then.
std::optional<ByteVector> ServedPages::end(bool does_hear) {
  if (far_ != nullptr && !far_->requests().end()) return std::nullopt;
  far_.reset();
  if (!is_closing_) close();
  if (!file_->is_over()) return std::nullopt;
  const Bytes drawn = pages_->end_serving(does_hear);
  return Packer().put(drawn).take();
}

void ServedPages::close() {
  is_closing_ = true;
  file_->begin();
  const Status submitted =
      guarded([this] { return place_.threads.submit(key_, [file = file_] { file->close(); }), Status(); });
  if (!submitted.is_ok()) file_->close();
}

Disk ServedPages::disk() {
  Disk disk;
  disk.load = [this](std::span<std::byte> bytes, Bytes offset) {
    return load_page(file_->file(), bytes, offset);
  };
  return disk;
}

Served ServedPages::served() {
  Served served = served_from(*pages_, page_);
  served.is_to_wait = NodePages::is_for_later;
  served.at_once = NodePages::services_of_server;
  served.wake = place_.wake;
  return served;
}

}  // namespace

Result<std::unique_ptr<PageServer>> PageServer::create(session::Session& session, bool has_threads) {
  Result<std::unique_ptr<executor::Threads>> threads = executor::Threads::create({0, has_threads ? 1 : 0});
  TR_TRY(threads.status());
  return std::unique_ptr<PageServer>(new PageServer(session, std::move(*threads)));
}

PageServer::PageServer(session::Session& session, std::unique_ptr<executor::Threads> threads)
    : session_(session), threads_(std::move(threads)), progress_(session.board(), false) {
  using node::Handed;
  node::MemoryTaker& taker = session.serving().taker();
  taker.on(Handed::elements, [this](int, std::unique_ptr<node::NodeMemory> memory, Unpacker description) {
    return serve_elements(std::move(memory), description);
  });
  taker.on(Handed::pages, [this](int, std::unique_ptr<node::NodeMemory> memory, Unpacker description) {
    return serve_pages(std::move(memory), description);
  });
  session.serving().park_at_most([this, &taker] {
    return taker.has_any() ? progress_.next_look() : std::chrono::nanoseconds(session::Parking::longest);
  });
}

ServerPlace PageServer::place() {
  return {progress_, *threads_, session_.memory().budget(), [this] { session_.serving().wake(); }};
}

PageServer::~PageServer() { session_.serving().taker().drop_all(); }

Result<std::unique_ptr<PageServer::Work>> PageServer::serve_elements(std::unique_ptr<node::NodeMemory> memory,
                                                                     Unpacker in) {
  const Owners owners(in, session_.topology().roster());
  Unpacker more(in.get_bytes());
  const auto plan = more.get<NodeElements::Plan>();
  if (!in.ok() || !more.ok() || plan.page <= 0 || plan.pages > memory->size() / plan.page)
    return Status(Code::argument, "the memory of a global array was handed over with another one's plan");
  return std::unique_ptr<Work>(std::make_unique<ServedElements>(place(), owners, plan, std::move(memory)));
}

Result<std::unique_ptr<PageServer::Work>> PageServer::serve_pages(std::unique_ptr<node::NodeMemory> memory,
                                                                  Unpacker in) {
  const Owners owners(in, session_.topology().roster());
  Unpacker more(in.get_bytes());
  const auto page = more.get<Bytes>();
  const auto most = more.get<Bytes>();
  const auto first = more.get<int>();
  const auto number = more.get<storage::FileNumber>();
  const std::string path = more.get_text();
  if (!in.ok() || !more.ok() || first < 0 || first >= std::ssize(owners.ranks))
    return Status(Code::argument, "pages of a shared file were handed over without their ranks");
  auto file = std::make_shared<ServedFile>(place(), session_.target(), path, number);
  auto work =
      std::make_unique<ServedPages>(place(), owners, std::move(file), owners.lowest(session_.topology()));
  TR_TRY(work->begin(page, most, first, std::move(memory)));
  return std::unique_ptr<Work>(std::move(work));
}

}  // namespace tailrace::shared
