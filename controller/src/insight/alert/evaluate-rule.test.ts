import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { evaluateRule, staleAfterMs, type NodeSamples, type RuleBefore, type SampleValue } from "./evaluate-rule.ts";
import type { RuleParameters } from "./alert-rule.ts";

const minute = 60_000;
const terms = (more: Partial<RuleParameters> = {}): RuleParameters => ({
  condition: "gt",
  threshold: 90,
  durationMs: minute,
  noData: "ignore",
  sinceMs: 0,
  ...more,
});
const at = (...values: readonly (readonly [seconds: number, value: number])[]): SampleValue[] =>
  values.map(([seconds, value]) => ({ timeMs: seconds * 1_000, value }));
const before = (nowS: number, more: Partial<RuleBefore> = {}): RuleBefore => ({
  fired: undefined,
  nowMs: nowS * 1_000,
  silentFromMs: new Map(),
  ...more,
});
/** Time from which the silence of each node counts, by node id. */
const since = (ms: number, ...nodes: readonly string[]) =>
  new Map((nodes.length === 0 ? ["a"] : nodes).map((node) => [node, ms]));
const one = (samples: readonly SampleValue[]): NodeSamples => new Map([["a", samples]]);
const firing = (nodeId = "a", firedAtS = 60) => ({ state: "firing", nodeId, firedAtMs: firedAtS * 1_000 }) as const;
const noData = (firedAtS: number) => ({ state: "no_data", nodeId: "a", firedAtMs: firedAtS * 1_000 }) as const;

const high = at([0, 95], [15, 96], [30, 97], [45, 98], [60, 99]);

// biome-ignore format: a table, aligned so that it reads as one
const cases: readonly (readonly [string, RuleParameters, NodeSamples, RuleBefore, object])[] = [
  ["below the threshold it is ok",                 terms(),                            one(at([0, 50])),                       before(1),  { state: "ok", value: 50, nodeId: "a" }],
  ["the threshold itself is not above it",         terms({ durationMs: 0 }),           one(at([0, 90])),                       before(1),  { state: "ok" }],
  ["without a duration the first sample fires",    terms({ durationMs: 0 }),           one(at([0, 91])),                       before(1),  { state: "firing", value: 91 }],
  ["lt is below",                                  terms({ condition: "lt", durationMs: 0 }), one(at([0, 89])),                before(1),  { state: "firing" }],
  ["true for less than the duration is pending",   terms(),                            one(high.slice(0, 4)),                  before(46), { state: "pending", sinceMs: 0 }],
  ["true for the duration fires",                  terms(),                            one(high),                              before(61), { state: "firing", sinceMs: 0, value: 99 }],
  ["one false sample restarts the duration",       terms(),                            one([...high, ...at([20, 1])]),         before(61), { state: "pending", sinceMs: 30_000 }],
  ["samples from before the rule do not count",    terms({ sinceMs: 10_000 }),         one(high),                              before(61), { state: "pending", sinceMs: 15_000 }],
  ["old samples fire nothing",                     terms(),                            one(high),                              before(121), { state: "pending" }],
  ["a sample far in the future is ignored",        terms({ durationMs: 0 }),           one(at([200, 99])),                     before(100), { state: "ok", nodeId: undefined }],
  ["it keeps firing without samples",              terms(),                            one([]),                                before(600, { fired: firing() }), { state: "firing" }],
  ["it keeps firing while it is true",           terms(),                            one(at([75, 95])),                      before(76, { fired: firing() }), { state: "firing", value: 95 }],
  ["a false sample resolves it",                   terms(),                            one(at([75, 80])),                      before(76, { fired: firing() }), { state: "ok", value: 80 }],
  ["an older false sample does not",                 terms(),                          one(at([74, 80], [75, 95])),            before(76, { fired: firing() }), { state: "firing" }],
  ["silence is ignored by default",                terms(),                            one(at([0, 1])),                        before(600, { silentFromMs: since(0) }), { state: "ok" }],
  ["silence of 60 s fires with no_data fire",      terms({ noData: "fire" }),          one(at([0, 1])),                        before(61, { silentFromMs: since(0) }), { state: "no_data", nodeId: "a" }],
  ["silence counts from the given time on",        terms({ noData: "fire" }),          one(at([0, 1])),                        before(61, { silentFromMs: since(2_000) }), { state: "ok" }],
  ["a node without any sample is silent too",      terms({ noData: "fire" }),          one([]),                                before(61, { silentFromMs: since(0) }), { state: "no_data" }],
  ["no_data stays with old samples",               terms({ noData: "fire" }),          one(at([0, 1])),                        before(700, { fired: noData(61) }), { state: "no_data" }],
  ["a false sample resolves no_data",              terms({ noData: "fire" }),          one(at([0, 1], [65, 1])),               before(66, { fired: noData(61), silentFromMs: since(0) }), { state: "ok" }],
  ["a true one does not before the duration",      terms({ noData: "fire" }),          one(at([0, 1], [65, 99])),              before(66, { fired: noData(61), silentFromMs: since(0) }), { state: "no_data" }],
  ["after the duration it fires",                  terms({ noData: "fire" }),          one(at([65, 99], [125, 99])),           before(126, { fired: noData(61), silentFromMs: since(0) }), { state: "firing" }],
  ["the worst node decides",                       terms({ durationMs: 0 }),           new Map([["a", at([0, 91])], ["b", at([0, 97])], ["c", at([0, 1])]]), before(1), { state: "firing", nodeId: "b", value: 97 }],
  ["another node continues the alert",             terms(),                            new Map([["a", at([75, 1])], ["b", at([75, 95])]]), before(76, { fired: firing("a") }), { state: "firing", nodeId: "b" }],
  ["the node that fired must resolve it",           terms(),                           new Map([["a", []], ["b", at([75, 1])]]), before(76, { fired: firing("a") }), { state: "firing" }],
  ["unless that node was removed",                 terms(),                            new Map([["b", at([75, 1])]]),          before(76, { fired: firing("a") }), { state: "ok" }],
  ["without a node that has it, it resolves",       terms(),                           new Map(),                              before(76, { fired: firing("a") }), { state: "ok", value: undefined }],
  ["a node being created may be silent",           terms({ noData: "fire" }),          new Map([["a", at([90, 1])], ["b", []]]), before(100, { silentFromMs: since(0) }), { state: "ok" }],
  ["so may a node without the metric",             terms({ noData: "fire" }),          one(at([90, 1])),                       before(100, { silentFromMs: since(0, "a", "b") }), { state: "ok" }],
  ["a silent node beside others fires",            terms({ noData: "fire" }),          new Map([["a", at([90, 1])], ["b", at([20, 1])]]), before(100, { silentFromMs: since(0, "a", "b") }), { state: "no_data", nodeId: "b" }],
  ["a silent worse node hides no other",           terms(),                            new Map([["a", at([0, 99], [60, 99])], ["b", at([60, 95], [120, 95])]]), before(130), { state: "firing", nodeId: "b" }],
];

test.each(cases)("%s", (_, rule, samples, was, expected) => {
  expect(evaluateRule(rule, samples, was)).toMatchObject(expected);
});

/** Samples every 15 s, like those of machines: time of the sample, time of its arrival, value. */
const streams = fc.array(
  fc.record({
    value: fc.integer({ min: 80, max: 100 }),
    lost: fc.boolean(),
    lateS: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 300 })),
    doubled: fc.boolean(),
  }),
  { minLength: 1, maxLength: 60 },
);
const rules = fc.record({
  durationMs: fc.constantFrom(0, minute, 3 * minute),
  noData: fc.constantFrom("ignore" as const, "fire" as const),
});

describe("over any stream", () => {
  test("the order of samples and duplicates do not matter", () => {
    fc.assert(
      fc.property(streams, rules, fc.infiniteStream(fc.nat()), (stream, rule, random) => {
        const samples = stream.map(({ value }, index) => ({ timeMs: index * 15_000, value }));
        const mixed = [...samples, ...samples.filter((_, index) => stream[index]?.doubled)]
          .map((sample) => ({ sample, place: random.next().value ?? 0 }))
          .sort((a, b) => a.place - b.place)
          .map(({ sample }) => sample);
        const was = before(stream.length * 15, { silentFromMs: since(0) });
        expect(evaluateRule(terms(rule), one(mixed), was)).toEqual(evaluateRule(terms(rule), one(samples), was));
      }),
    );
  });

  test("firing and resolution alternate, old samples fire nothing, and restarts change nothing", () => {
    fc.assert(
      fc.property(streams, rules, fc.func(fc.boolean()), (stream, rule, restarts) => {
        const samples = stream.flatMap(({ value, lost, lateS, doubled }, index) => {
          const sample = { timeMs: index * 15_000, value };
          const came = { sample, atMs: sample.timeMs + lateS * 1_000 };
          return lost ? [] : doubled ? [came, { ...came, atMs: came.atMs + 20_000 }] : [came];
        });
        const events: { type: "fired" | "resolved"; atMs: number }[] = [];
        let fired: RuleBefore["fired"];
        const endMs = stream.length * 15_000 + 400_000;
        for (let nowMs = 0; nowMs <= endMs; nowMs += 5_000) {
          const arrived = samples.filter(({ atMs }) => atMs <= nowMs).map(({ sample }) => sample);
          const was = { fired, nowMs, silentFromMs: since(0) };
          // A controller that has just taken over has no more samples than one that has run for an hour.
          const window = arrived.filter(({ timeMs }) => timeMs >= nowMs - rule.durationMs - 5 * minute);
          const seen = evaluateRule(terms(rule), one(restarts(nowMs) ? window.toReversed() : window), was);
          const fires = seen.state === "firing" || seen.state === "no_data";
          if (fires && fired === undefined) {
            events.push({ type: "fired", atMs: nowMs });
            if (seen.state === "firing") {
              const newest = Math.max(...arrived.map(({ timeMs }) => timeMs));
              expect(newest).toBeGreaterThanOrEqual(nowMs - staleAfterMs);
              const during = arrived.filter(({ timeMs }) => timeMs >= newest - rule.durationMs);
              expect(during.every(({ value }) => value > 90)).toBe(true);
            } else {
              expect(rule.noData).toBe("fire");
              expect(arrived.every(({ timeMs }) => timeMs < nowMs - staleAfterMs)).toBe(true);
            }
            fired = {
              state: seen.state === "firing" ? "firing" : "no_data",
              nodeId: seen.nodeId ?? null,
              firedAtMs: nowMs,
            };
          } else if (fires && fired !== undefined) {
            fired = { ...fired, state: seen.state === "firing" ? "firing" : "no_data" };
          } else if (!fires && fired !== undefined) {
            events.push({ type: "resolved", atMs: nowMs });
            const newest = arrived.toSorted((a, b) => b.timeMs - a.timeMs)[0];
            expect(newest?.value).toBeLessThanOrEqual(90);
            fired = undefined;
          }
        }
        const expected = events.map((_, index) => (index % 2 === 0 ? "fired" : "resolved"));
        expect(events.map(({ type }) => type)).toEqual(expected);
      }),
      { numRuns: 150 },
    );
  });

  test("values that never pass the threshold never fire", () => {
    fc.assert(
      fc.property(streams, rules, (stream, rule) => {
        const samples = stream.map(({ value }, index) => ({ timeMs: index * 15_000, value: Math.min(value, 90) }));
        const was = before(stream.length * 15, { silentFromMs: since(0) });
        expect(evaluateRule(terms(rule), one(samples), was).state).toBe("ok");
      }),
    );
  });
});
