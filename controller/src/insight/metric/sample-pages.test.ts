import fc from "fast-check";
import { expect, test } from "vitest";
import { positionText, readPosition, samplePage } from "./sample-pages.ts";

const nodes = ["0198f2a4-6f12-7e83-b6c4-9a0d3f5b2e71", "0198f2a4-6f12-7e83-b6c4-9a0d3f5b2e72"];
const values = new Map([[1, 1]]);

test("pages joined by cursors have each sample once, however late a node reports", () => {
  const times = fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { maxLength: 40 });
  fc.assert(
    fc.property(
      fc.tuple(times, times),
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 0, max: 40 }),
      (samples, limit, late) => {
        const all = samples.map((each) => each.toSorted((a, b) => a - b));
        let position = new Map(nodes.map((id) => [id, 0]));
        const seen: string[] = [];
        for (let round = 0; round < 200; round += 1) {
          // The second node was disconnected and reports its samples later.
          const there = [all[0] ?? [], round < late ? [] : (all[1] ?? [])];
          const read = nodes.flatMap((machineId, index) =>
            (there[index] ?? [])
              .filter((timeMs) => timeMs > (position.get(machineId) ?? 0))
              .slice(0, limit + 1)
              .map((timeMs) => ({ machineId, timeMs, values })),
          );
          const page = samplePage(read, position, limit);
          expect(page.samples.length).toBeLessThanOrEqual(limit);
          seen.push(...page.samples.map(({ machineId, timeMs }) => `${machineId} ${timeMs}`));
          position = new Map(readPosition(positionText(page.position), nodes));
          if (round >= late && !page.more) break;
        }
        const expected = nodes.flatMap((id, index) => (all[index] ?? []).map((timeMs) => `${id} ${timeMs}`));
        expect(seen.toSorted()).toEqual(expected.toSorted());
      },
    ),
  );
});

test("a new node begins at the earliest position of the others", () => {
  const text = positionText(new Map([[nodes[0] ?? "", 1_700_000_000_000]]));
  expect([...readPosition(text, nodes).values()]).toEqual([1_700_000_000_000, 1_700_000_000_000]);
});
