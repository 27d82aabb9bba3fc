// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "transport_cases.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <tuple>

#include "ground/base/text.hpp"
#include "ground/comm/line_numbers.hpp"

namespace tailrace::comm {

namespace {

constexpr Traffic kinds[] = {Traffic::control, Traffic::request, Traffic::data, Traffic::broadcast};
/// The kinds of messages that a rank takes from any source.
constexpr Traffic from_anyone[] = {Traffic::control, Traffic::request};
/// Two lines with different tags.
constexpr LineNumber lines[] = {line_number::session,
                                line_number::first_free | 3ULL << line_number::tag_bits};
/// The size of a message that no MPI keeps in the receiver's buffers.
constexpr std::size_t large = (std::size_t{1} << 20) + 5;

ByteVector message(int source, int number, std::size_t size) {
  ByteVector bytes(size);
  std::uint64_t state = static_cast<std::uint64_t>(source * 7919 + number * 104'729 + 1);
  for (std::size_t at = 0; at < size; at += sizeof state) {
    state = state * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    std::memcpy(bytes.data() + at, &state, std::min(sizeof state, size - at));
  }
  return bytes;
}

/// Moves the transport on until `done`, but no longer than a minute of the transport's own time.
bool until(End& end, const std::function<bool()>& done, const std::string& what) {
  Transport& transport = end.transport();
  const std::int64_t limit = transport.now() + std::int64_t{60} * 1'000'000'000;
  while (!done()) {
    if (transport.now() > limit) {
      end.check(false, cat("after a minute: ", what));
      return false;
    }
    if (!transport.progress()) transport.idle(0, what);
  }
  return true;
}

void wait_until_sent(End& end) {
  until(
      end, [&] { return end.transport().all_sent(); }, "everything has left");
  for (const LineNumber line : lines) {
    for (const Traffic kind : kinds)
      end.check(end.transport().unsent(line, kind) == 0, "what has left is not counted as unsent");
  }
}

ByteVector take_from(End& end, int source, LineNumber line, Traffic kind) {
  std::optional<ByteVector> bytes;
  until(
      end,
      [&] {
        bytes = end.transport().receive_from(source, line, kind);
        return bytes.has_value();
      },
      cat("a message of rank ", source, " has arrived"));
  return bytes.value_or(ByteVector());
}

std::optional<Envelope> receive(End& end, Traffic kind) {
  return kind == Traffic::control ? end.transport().receive() : end.transport().receive_request();
}

Envelope take_any(End& end, Traffic kind) {
  std::optional<Envelope> envelope;
  until(
      end,
      [&] {
        envelope = receive(end, kind);
        return envelope.has_value();
      },
      "a message of anyone has arrived");
  return envelope.value_or(Envelope());
}

/// Checks, once all ranks have taken their messages, that no other message has arrived or is on its way.
void ends_empty(End& end) {
  wait_until_sent(end);
  end.meet();
  for (int look = 0; look < 50; ++look) {
    end.transport().progress();
    for (const Traffic kind : from_anyone)
      end.check(!receive(end, kind).has_value(), "no message of anyone is left");
    for (int source = 0; source < end.size(); ++source) {
      for (const LineNumber line : lines) {
        for (const Traffic kind : {Traffic::data, Traffic::broadcast})
          end.check(!end.transport().receive_from(source, line, kind).has_value(), "no message is left");
      }
    }
  }
  end.meet();
}

using Way = std::tuple<int, LineNumber, Traffic>;  // source, line, kind

/// Returns the size of a message by its number: small and empty ones, and some that MPI leaves with the
/// sender until they are received.
std::size_t size_of(int number) {
  constexpr std::size_t sizes[] = {0, 1, 8, 333, 1024, 1025, 4096, 70'000, 0, 200'000};
  return sizes[static_cast<std::size_t>(number) % std::size(sizes)];
}

void messages_of_a_sender_a_line_and_a_kind_arrive_in_the_order_sent(End& end) {
  constexpr int each = 30;
  Transport& transport = end.transport();
  const int me = transport.rank();
  std::vector<std::pair<int, Way>> to_send;  // destination, and the way; me is the source
  for (int destination = 0; destination < end.size(); ++destination) {
    for (const LineNumber line : lines) {
      for (const Traffic kind : kinds) {
        for (int i = 0; i < each; ++i) to_send.push_back({destination, {me, line, kind}});
      }
    }
  }
  std::mt19937 random(static_cast<unsigned>(me) + 1);
  std::shuffle(to_send.begin(), to_send.end(), random);
  std::vector<Way> ways;  // on which a rank asks for messages
  for (int source = 0; source < end.size(); ++source) {
    for (const LineNumber line : lines) {
      for (const Traffic kind : {Traffic::data, Traffic::broadcast}) ways.push_back({source, line, kind});
    }
  }
  std::map<std::pair<int, Way>, int> sent;
  std::map<Way, int> came;
  int expected = static_cast<int>(to_send.size());
  const auto take = [&](const Way& way, const ByteVector& bytes) {
    const int number = came[way]++;
    end.check(bytes == message(std::get<0>(way), number, size_of(number)),
              cat("message ", number, " of rank ", std::get<0>(way), " is the next one, and whole"));
    --expected;
  };
  std::size_t next = 0;
  until(
      end,
      [&] {
        for (int burst = 0; burst < 5 && next < to_send.size(); ++burst, ++next) {
          const auto& [destination, way] = to_send[next];
          const int number = sent[to_send[next]]++;
          transport.send(destination, std::get<1>(way), std::get<2>(way),
                         message(me, number, size_of(number)));
        }
        for (const Traffic kind : from_anyone) {
          if (auto envelope = receive(end, kind))
            take({envelope->source, envelope->line, kind}, envelope->bytes);
        }
        std::shuffle(ways.begin(), ways.end(), random);
        for (const Way& way : ways) {
          if (const auto bytes = std::apply([&](auto... of) { return transport.receive_from(of...); }, way))
            take(way, *bytes);
        }
        return next == to_send.size() && expected == 0;
      },
      "all messages have arrived");
  for (const auto& [way, count] : came) end.check(count == each, "each way has all its messages");
  end.check(came.size() == static_cast<std::size_t>(end.size()) * std::size(lines) * std::size(kinds),
            "messages came on every way");
  ends_empty(end);
}

void a_rank_sends_to_itself(End& end) {
  Transport& transport = end.transport();
  const int me = transport.rank();
  for (int number = 0; number < 3; ++number) {
    for (const LineNumber line : lines) {
      for (const Traffic kind : kinds)
        transport.send(me, line, kind, message(me, number, number == 1 ? large : size_of(number)));
    }
  }
  end.check(transport.all_sent(), "what a rank sends to itself has left at once");
  std::map<std::pair<LineNumber, Traffic>, int> came;
  for (int i = 0; i < 12; ++i) {
    const Traffic kind = from_anyone[i % 2];
    const Envelope envelope = take_any(end, kind);
    const int number = came[{envelope.line, kind}]++;
    end.check(envelope.source == me, "it names itself as the sender");
    end.check(envelope.bytes == message(me, number, number == 1 ? large : size_of(number)), "in order");
  }
  for (const LineNumber line : lines) {
    for (const Traffic kind : from_anyone)
      end.check(came[{line, kind}] == 3, "each line has its messages of anyone");
    for (const Traffic kind : {Traffic::broadcast, Traffic::data}) {
      for (int number = 0; number < 3; ++number)
        end.check(
            take_from(end, me, line, kind) == message(me, number, number == 1 ? large : size_of(number)),
            "its own messages in order");
    }
  }
  ends_empty(end);
}

void empty_messages_arrive(End& end) {
  Transport& transport = end.transport();
  for (int destination = 0; destination < end.size(); ++destination) {
    for (const Traffic kind : kinds) transport.send(destination, lines[1], kind, {});
  }
  for (int i = 0; i < end.size(); ++i) {
    for (const Traffic kind : from_anyone) {
      const Envelope envelope = take_any(end, kind);
      end.check(envelope.bytes.empty() && envelope.line == lines[1], "an empty message of anyone");
    }
  }
  for (int source = 0; source < end.size(); ++source) {
    for (const Traffic kind : {Traffic::data, Traffic::broadcast})
      end.check(take_from(end, source, lines[1], kind).empty(), "an empty message");
  }
  ends_empty(end);
}

/// Sends messages on lines that have the same tag, and differ in their count or in the bit of the node.
void messages_of_anyone_tell_source_and_line(End& end) {
  Transport& transport = end.transport();
  constexpr LineNumber same_tag[] = {line_number::without_data, line_number::without_data | 1ULL << 40,
                                     line_number::without_data | line_number::node_bit};
  for (const Traffic kind : from_anyone) {
    for (int destination = 0; destination < end.size(); ++destination) {
      for (int i = 0; i < 3; ++i)
        transport.send(destination, same_tag[i], kind, message(transport.rank(), i, 40));
    }
    std::map<int, int> came;
    for (int i = 0; i < 3 * end.size(); ++i) {
      const Envelope envelope = take_any(end, kind);
      const int number = came[envelope.source]++;
      end.check(number < 3 && envelope.line == same_tag[number % 3], "the line");
      end.check(envelope.bytes == message(envelope.source, number, 40), "the source");
    }
  }
  ends_empty(end);
}

/// The ranks before and behind this one, in a ring.
struct Neighbours {
  int next, before;
  explicit Neighbours(End& end)
      : next((end.transport().rank() + 1) % end.size()),
        before((end.transport().rank() + end.size() - 1) % end.size()) {}
};

void large_messages_stay_with_their_sender_until_they_are_asked_for(End& end) {
  if (end.size() == 1) return;
  Transport& transport = end.transport();
  const auto [next, before] = Neighbours(end);
  for (const Traffic kind : {Traffic::data, Traffic::broadcast}) {
    transport.send(next, lines[0], kind, message(transport.rank(), 1, large));
    transport.send(next, lines[0], kind, message(transport.rank(), 2, large));
    end.meet();
    for (int look = 0; look < 300; ++look) {
      transport.progress();
      end.check(!transport.receive().has_value(), "nothing else was sent");
      transport.idle(1000, "nothing");
    }
    end.check(transport.unsent(lines[0], kind) == static_cast<Bytes>(2 * large), "nobody has asked");
    end.check(!transport.all_sent(), "nobody has asked");
    end.meet();
    end.check(take_from(end, before, lines[0], kind) == message(before, 1, large), "the first one");
    end.meet();
    until(
        end, [&] { return transport.unsent(lines[0], kind) == static_cast<Bytes>(large); },
        "the message that was asked for has left, and the other one stays");
    for (int look = 0; look < 100; ++look) transport.progress();
    end.check(transport.unsent(lines[0], kind) == static_cast<Bytes>(large), "nobody has asked for it");
    end.meet();
    end.check(take_from(end, before, lines[0], kind) == message(before, 2, large), "the second one");
    wait_until_sent(end);
  }
  ends_empty(end);
}

void kinds_and_lines_do_not_wait_for_each_other(End& end) {
  if (end.size() == 1) return;
  Transport& transport = end.transport();
  const auto [next, before] = Neighbours(end);
  for (const Traffic held : {Traffic::data, Traffic::broadcast}) {
    const Traffic other = held == Traffic::data ? Traffic::broadcast : Traffic::data;
    transport.send(next, lines[0], held, message(transport.rank(), 1, large));
    transport.send(next, lines[0], other, message(transport.rank(), 2, large));
    transport.send(next, lines[1], held, message(transport.rank(), 3, large));
    for (const Traffic kind : from_anyone) {
      transport.send(next, lines[0], kind, message(transport.rank(), 4, 100));
      end.check(take_any(end, kind).bytes == message(before, 4, 100), "what is taken from anyone passes");
    }
    end.check(take_from(end, before, lines[1], held) == message(before, 3, large), "another line passes");
    end.check(take_from(end, before, lines[0], other) == message(before, 2, large), "another kind passes");
    end.meet();
    until(
        end, [&] { return transport.unsent(lines[1], held) + transport.unsent(lines[0], other) == 0; },
        "what was taken has left");
    end.check(transport.unsent(lines[0], held) == static_cast<Bytes>(large),
              "the one that nobody has asked for");
    end.meet();
    end.check(take_from(end, before, lines[0], held) == message(before, 1, large), "it comes at last");
  }
  ends_empty(end);
}

void what_one_source_has_sent_is_nobody_else_s(End& end) {
  Transport& transport = end.transport();
  const auto [next, before] = Neighbours(end);
  transport.send(next, lines[1], Traffic::data, message(transport.rank(), 5, 77));
  end.meet();
  for (int look = 0; look < 50; ++look) {
    transport.progress();
    for (int source = 0; source < end.size(); ++source) {
      end.check(!transport.receive_from(source, lines[0], Traffic::data).has_value(), "another line");
      end.check(!transport.receive_from(source, lines[1], Traffic::broadcast).has_value(), "another kind");
      if (source != before)
        end.check(!transport.receive_from(source, lines[1], Traffic::data).has_value(), "another source");
    }
    end.check(!transport.receive().has_value(), "a control message");
  }
  end.check(take_from(end, before, lines[1], Traffic::data) == message(before, 5, 77), "the right one");
  ends_empty(end);
}

void the_clock_goes_forward_and_idling_ends(End& end) {
  Transport& transport = end.transport();
  std::int64_t before = transport.now();
  for (int i = 0; i < 100; ++i) {
    transport.idle(i % 2 == 0 ? 0 : 10'000, "the clock");
    const std::int64_t now = transport.now();
    end.check(now >= before, "the clock goes forward");
    before = now;
  }
  end.meet();
}

/// Sends messages around 1 GiB and larger: MPI counts in int, and the transport cuts them into parts of 1
/// GiB.
void messages_beyond_the_largest_part_are_whole(End& end) {
  const auto [next, before] = Neighbours(end);
  constexpr std::size_t part = std::size_t{1} << 30;
  for (const std::size_t size : {part - 1, part, part + 1, 2 * part}) {
    if (end.transport().rank() == 0) {
      ByteVector bytes(size);
      for (std::size_t at = 0; at < size; at += 4097) bytes[at] = static_cast<std::byte>(at >> 12);
      end.transport().send(next, lines[0], Traffic::data, std::move(bytes));
      end.transport().send(next, lines[0], Traffic::data, message(0, 1, 3));
    }
    if (before == 0) {
      const ByteVector bytes = take_from(end, 0, lines[0], Traffic::data);
      end.check(bytes.size() == size, cat(bytes.size(), " bytes in place of ", size));
      bool same = true;
      for (std::size_t at = 0; at < bytes.size(); at += 4097)
        same &= bytes[at] == static_cast<std::byte>(at >> 12);
      end.check(same, "the bytes are those sent");
      end.check(take_from(end, 0, lines[0], Traffic::data) == message(0, 1, 3),
                "the next message is another one");
    }
    wait_until_sent(end);
    end.meet();
  }
  ends_empty(end);
}

/// The transport may use the memory of ended messages for others, which must not change any message.
void messages_in_memory_that_was_used_before_are_whole(End& end) {
  Transport& transport = end.transport();
  const int next = (transport.rank() + 1) % end.size(),
            before = (transport.rank() + end.size() - 1) % end.size();
  transport.keep_memory(4 * static_cast<Bytes>(large));
  for (int number = 0; number < 6; ++number) {
    const std::size_t size = large - static_cast<std::size_t>(number) * 1000;
    const ByteVector content = message(transport.rank(), number, size);
    ByteVector bytes = transport.memory(static_cast<Bytes>(size));
    end.check(bytes.size() == size, "memory has the size that was asked for");
    std::copy(content.begin(), content.end(), bytes.begin());
    transport.send(next, lines[0], Traffic::data, std::move(bytes));
    ByteVector got = take_from(end, before, lines[0], Traffic::data);
    end.check(got == message(before, number, size), "a message in used memory is whole");
    transport.give_back(std::move(got));
    wait_until_sent(end);
  }
  transport.keep_memory(0);
  end.meet();
}

#define CASE(name) \
  { #name, name }

}  // namespace

const std::vector<TransportCase>& transport_cases() {
  static const std::vector<TransportCase> cases{
      CASE(messages_of_a_sender_a_line_and_a_kind_arrive_in_the_order_sent),
      CASE(a_rank_sends_to_itself),
      CASE(empty_messages_arrive),
      CASE(messages_of_anyone_tell_source_and_line),
      CASE(large_messages_stay_with_their_sender_until_they_are_asked_for),
      CASE(kinds_and_lines_do_not_wait_for_each_other),
      CASE(what_one_source_has_sent_is_nobody_else_s),
      CASE(the_clock_goes_forward_and_idling_ends),
      CASE(messages_in_memory_that_was_used_before_are_whole),
  };
  return cases;
}

const std::vector<TransportCase>& large_transport_cases() {
  static const std::vector<TransportCase> cases{CASE(messages_beyond_the_largest_part_are_whole)};
  return cases;
}

}  // namespace tailrace::comm
