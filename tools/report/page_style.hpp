// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

namespace tailrace::reports {

/// The style of the page: light and dark as the reader's system is, and light on paper. Storage is orange,
/// MPI blue, what the library works on green; what waits for servers or ranks is purple.
inline constexpr char page_style[] = R"(
:root {
  --on: #ffffff; --paper: #f6f7f5; --card: #ffffff; --ink: #16222b; --soft: #5b6a73; --line: #dde2e1; --faint: #eef1f0; --accent: #0f7285; --warn: #c2502e;
  --model: #cdd5d8; --idle: #e9edec; --capture: #0f7285; --encode: #2f8f5b; --assemble: #8cc5a2; --staging: #8a3f8f; --skew: #c79ccb;
  --get: #d1608a; --message: #2f5597; --barrier: #7293cf; --pieces: #b4c8ea; --await: #f4c99b; --write: #c2502e; --fsync: #e8964a; --wait: #8d979d; --commit: #7f2f16; --forencode: #b9c2c6; --other: #a58b5b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --on: #0b1114; --paper: #10171b; --card: #182127; --ink: #e6ecee; --soft: #9aaab2; --line: #2b373e; --faint: #222d33; --accent: #4dbccf; --warn: #f08a63;
    --model: #46545c; --idle: #29343b; --capture: #38a3b8; --encode: #4bb37b; --assemble: #2f6b4b; --staging: #b869be; --skew: #6f4773;
    --get: #e07aa3; --message: #5d88d6; --barrier: #3f5f9c; --pieces: #2c4066; --await: #7a5a35; --write: #e2683f; --fsync: #b97430; --wait: #75828a; --commit: #f7b08f; --forencode: #55636b; --other: #9c8453;
  }
}
@media print {
  :root {
    --on: #ffffff; --paper: #ffffff; --card: #ffffff; --ink: #000000; --soft: #444444; --line: #cccccc; --faint: #f2f2f2; --accent: #0f7285; --warn: #a33d1f;
    --model: #cdd5d8; --idle: #e9edec; --capture: #0f7285; --encode: #2f8f5b; --assemble: #8cc5a2; --staging: #8a3f8f; --skew: #c79ccb;
    --get: #d1608a; --message: #2f5597; --barrier: #7293cf; --pieces: #b4c8ea; --await: #f4c99b; --write: #c2502e; --fsync: #e8964a; --wait: #8d979d; --commit: #7f2f16; --forencode: #b9c2c6; --other: #a58b5b;
  }
}
* { box-sizing: border-box; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 40px 20px 60px; }
.brand { color: var(--accent); font-weight: 650; letter-spacing: .02em; }
h1 { font-size: clamp(1.6rem, 4vw, 2.3rem); line-height: 1.15; margin: .15em 0 .4em; letter-spacing: -.015em; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 0 0 .2em; } h3 { font-size: .95rem; margin: 1.4em 0 .4em; font-weight: 600; }
p { margin: 0 0 .6em; overflow-wrap: anywhere; } .lead, .about { color: var(--soft); } .lead { margin-bottom: .15em; } .about { font-size: .92rem; }
.error { color: var(--warn); font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px; margin: 22px 0; }
.tile, .card, .advice { background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.tile { padding: 14px 16px; } .tile .label, .tile .note { font-size: .84rem; color: var(--soft); }
.tile .value { font-size: 1.6rem; font-weight: 640; line-height: 1.25; font-variant-numeric: tabular-nums; }
.card, .advice { padding: 18px 20px; margin: 18px 0; } .advice { border-left: 4px solid var(--accent); }
.advice ol { margin: .5em 0 0; padding-left: 1.4em; } .advice li + li { margin-top: .5em; }
code { font: .9em ui-monospace, "DejaVu Sans Mono", monospace; background: var(--faint); border-radius: 5px; padding: .1em .4em; }
.remarks { margin: 0 0 18px; padding: 12px 16px 12px 32px; border-left: 4px solid var(--warn); background: var(--card); border-radius: 6px; font-size: .92rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 10px 0; padding: 0; font-size: .84rem; color: var(--soft); }
.legend i { display: inline-block; width: 14px; height: 14px; border-radius: 3px; vertical-align: -2px; margin-right: 6px; border: 1px solid var(--line); }
.scroll { overflow-x: auto; } .scroll svg { display: block; width: 100%; min-width: 620px; height: auto; }
svg text { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; } svg .label { fill: var(--ink); } svg .grid { stroke: var(--line); stroke-width: 1; }
svg .in { fill: var(--ink); pointer-events: none; } svg .strong { fill: var(--on); }
svg .range { stroke-width: 2.5; } svg .first { fill: var(--accent); stroke: var(--accent); } svg .second { fill: var(--warn); stroke: var(--warn); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; margin-top: 10px; }
caption { text-align: left; color: var(--soft); padding-bottom: 4px; overflow-wrap: anywhere; }
th, td { text-align: right; padding: 5px 9px; border-bottom: 1px solid var(--line); white-space: nowrap; font-weight: 400; }
thead th { font-weight: 600; } .l { text-align: left; } tbody th { text-align: left; } tr:last-child > * { border-bottom: 0; }
details { margin-top: 12px; } summary { cursor: pointer; color: var(--soft); } footer { color: var(--soft); font-size: .84rem; margin-top: 26px; }
.k-model { fill: var(--model); background: var(--model); } .k-idle { fill: var(--idle); background: var(--idle); }
.k-capture { fill: var(--capture); background: var(--capture); } .k-encode { fill: var(--encode); background: var(--encode); }
.k-assemble { fill: var(--assemble); background: var(--assemble); } .k-staging_full { fill: var(--staging); background: var(--staging); }
.k-skew { fill: var(--skew); background: var(--skew); } .k-get_wait { fill: var(--get); background: var(--get); }
.k-message { fill: var(--message); background: var(--message); } .k-barrier { fill: var(--barrier); background: var(--barrier); }
.k-wait_for_messages { fill: var(--pieces); background: var(--pieces); } .k-wait_for_storage { fill: var(--await); background: var(--await); }
.k-write { fill: var(--write); background: var(--write); } .k-fsync { fill: var(--fsync); background: var(--fsync); }
.k-commit { fill: var(--commit); background: var(--commit); } .k-wait_for_encoding { fill: var(--forencode); background: var(--forencode); }
.k-wait { fill: var(--wait); background: var(--wait); } .k-other { fill: var(--other); background: var(--other); }
@media print {
  body { font-size: 11px; } main { max-width: none; padding: 0; } details { display: none; } .tiles { grid-template-columns: repeat(4, 1fr); margin: 10px 0; }
  .tile { padding: 6px 10px; } .card, .advice { padding: 8px 12px; margin: 10px 0; } .card, .tile, .advice, tr { break-inside: avoid; }
  .scroll { overflow: visible; } .scroll svg { min-width: 0; } th, td { padding: 2px 6px; }
}
)";

}  // namespace tailrace::reports
