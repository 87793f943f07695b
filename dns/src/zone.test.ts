import fc from "fast-check";
import { expect, test } from "vitest";
import { createZone, type RecordSet } from "./zone.ts";

const origin = "z.test";
const set = (label: string, ...addresses: string[]): RecordSet => ({ name: `${label}.z.test`, addresses, ttlS: 1 });
const base = { revision: 1n, reset: false, synced: true, origin, controllers: [] };

test("a full zone replaces the previous one only when it is complete", () => {
  const zone = createZone();
  zone.apply({ ...base, reset: true, records: [set("a", "10.0.0.1")] });
  zone.apply({ ...base, revision: 2n, reset: true, synced: false, records: [set("b", "10.0.0.2")] });
  expect(zone.find("a.z.test").kind).toBe("records");
  expect(zone.revision).toBe(1n);
  zone.apply({ ...base, revision: 2n, records: [set("c", "10.0.0.3")] });
  expect(["a", "b", "c"].map((label) => zone.find(`${label}.z.test`).kind)).toEqual(["none", "records", "records"]);
  expect(zone.revision).toBe(2n);
});

test("a stream that breaks within a zone leaves the previous one, and the next one restarts", () => {
  const zone = createZone({ origin, revision: "5", records: [set("a", "10.0.0.1")] });
  zone.apply({ ...base, revision: 6n, reset: true, synced: false, records: [set("b", "10.0.0.2")] });
  zone.apply({ ...base, revision: 7n, reset: true, records: [set("c", "10.0.0.3")] });
  expect(zone.snapshot()).toEqual({ origin, revision: "7", records: [set("c", "10.0.0.3")], controllers: [] });
});

test("after any changes, non-terminals are empty and the zone equals a new one", () => {
  const labels = fc
    .array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 })
    .map((parts) => parts.join("."));
  const edits = fc.array(fc.tuple(labels, fc.boolean()), { maxLength: 30 });
  fc.assert(
    fc.property(edits, (steps) => {
      const zone = createZone({ origin, revision: "1", records: [] });
      for (const [label, there] of steps)
        zone.apply({ ...base, records: [set(label, ...(there ? ["10.0.0.1"] : []))] });
      const rebuilt = createZone(zone.snapshot());
      for (const [label] of steps) {
        for (let name = `${label}.z.test`; name !== origin; name = name.slice(name.indexOf(".") + 1)) {
          expect(zone.find(name)).toEqual(rebuilt.find(name));
        }
      }
    }),
  );
});

test("controller addresses stay until a batch has others", () => {
  const zone = createZone({ origin, revision: "5", records: [], controllers: ["10.0.0.1:1"] });
  zone.apply({ ...base, revision: 6n, records: [] });
  expect(zone.controllers).toEqual(["10.0.0.1:1"]);
  zone.apply({ ...base, revision: 6n, records: [], controllers: ["10.0.0.2:1", "10.0.0.3:1"] });
  expect(createZone(zone.snapshot()).controllers).toEqual(["10.0.0.2:1", "10.0.0.3:1"]);
});
