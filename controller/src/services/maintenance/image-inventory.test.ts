import { expect, test } from "vitest";
import { registerChanges } from "./image-inventory.ts";

const offer = (engine: string, version: string, image: string, engineVersion: string) => ({
  engine,
  version,
  available: true,
  image,
  engineVersion,
});
const first = [offer("postgresql", "17", "trixie-1", "17.10-0+deb13u1"), offer("valkey", "8.1", "trixie-1", "8.1.1")];
const second = [offer("postgresql", "17", "trixie-2", "17.11"), offer("valkey", "8.1", "trixie-2", "8.1.1")];
const [known] = registerChanges(first, [], new Set(), 1).added;

test("an image is registered once, with its engines and the time", () => {
  expect(known).toMatchObject({
    metadata: { id: "trixie-1", createdAt: 1 },
    spec: { engines: [{ engineVersion: "17.10" }, { engineVersion: "8.1.1" }], urgent: null },
    status: { newestOf: ["postgresql 17", "valkey 8.1"] },
  });
  expect(registerChanges(first, known ? [known] : [], new Set(), 2)).toEqual({ added: [], changed: [], removed: [] });
});

test("a kernel of virtual machines is an image of a separate series", () => {
  const [kernel] = registerChanges([offer("linux", "guest", "guest-1", "6.12.48")], [], new Set(), 1).added;
  expect(kernel).toMatchObject({ metadata: { id: "guest-1" }, status: { newestOf: ["linux guest"] } });
  const newer = [offer("linux", "guest", "guest-2", "6.12.57")];
  expect(registerChanges(newer, kernel ? [kernel] : [], new Set(["trixie-1", "guest-1"]), 2).removed).toEqual([]);
});

test("engines of the host, and images that are not built, are not registered", () => {
  const host = [{ engine: "postgresql", version: "17", available: true }];
  const missing = [{ ...first[0], available: false, engine: "postgresql", version: "17" }];
  expect(registerChanges([...host, ...missing], [], new Set(), 1).added).toEqual([]);
});

test("an image that is no longer the newest of any series is retained while a machine runs from it", () => {
  const all = known ? [known] : [];
  const used = registerChanges(second, all, new Set(["trixie-1"]), 2);
  expect(used.added.map(({ metadata }) => metadata.id)).toEqual(["trixie-2"]);
  expect(used.changed).toMatchObject([{ metadata: { id: "trixie-1", createdAt: 1 }, status: { newestOf: [] } }]);
  expect(registerChanges(second, all, new Set(), 2).removed).toEqual(["trixie-1"]);
});

test("text libraries are registered, also for an image that was registered without them", () => {
  const facts = first.map((one) => ({ ...one, textLibraries: { libc: "2.41", ICU: "76.1" } }));
  const [added] = registerChanges(facts, [], new Set(), 1).added;
  expect(added?.spec.textLibraries).toEqual({ libc: "2.41", ICU: "76.1" });
  const { changed } = registerChanges(facts, known ? [known] : [], new Set(), 2);
  expect(changed[0]?.spec).toEqual({ ...known?.spec, textLibraries: { libc: "2.41", ICU: "76.1" } });
  expect(registerChanges(facts, changed, new Set(), 3).changed).toEqual([]);
});
