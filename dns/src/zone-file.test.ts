import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "@holdfast/common/log.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { RecordSet, Zone, ZoneChange } from "./zone.ts";
import { createZoneFile } from "./zone-file.ts";

const origin = "local.holdfast.test";
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-zone-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const set = (name: string, address: string): RecordSet => ({
  name: `${name}.${origin}`,
  addresses: address === "" ? [] : [address],
  ttlS: 1,
});

function change(revision: number, ...records: RecordSet[]): ZoneChange {
  return { revision: BigInt(revision), reset: false, synced: true, origin, records, controllers: [] };
}

/** A zone file with two names, at revision 1. */
async function begin() {
  const file = createZoneFile(directory, silentLog);
  const zone = await file.read();
  zone.apply({ ...change(1, set("a", "127.0.0.1"), set("b", "127.0.0.2")), reset: true });
  await file.write(zone.snapshot());
  return file;
}

const read = () => createZoneFile(directory, silentLog).read();
const names = (zone: Zone) =>
  zone.snapshot().records.map(({ name, addresses }) => `${name.split(".")[0]} ${addresses.join()}`);

test("reads the zone with all later changes, and continues from there", async () => {
  const file = await begin();
  await file.append([change(2, set("c", "127.0.0.3")), change(3, set("a", ""))]);
  await file.append([{ ...change(4, set("b", "127.0.0.9")), controllers: ["127.0.0.1:1"] }]);
  const zone = await read();
  expect(names(zone)).toEqual(["b 127.0.0.9", "c 127.0.0.3"]);
  expect(zone.revision).toBe(4n);
  expect(zone.controllers).toEqual(["127.0.0.1:1"]);
  const next = createZoneFile(directory, silentLog);
  await next.read();
  await next.append([change(5, set("d", "127.0.0.4"))]);
  expect(names(await read())).toContain("d 127.0.0.4");
});

test("stops at a truncated or damaged line, and then needs a full write", async () => {
  const file = await begin();
  await file.append([change(2, set("c", "127.0.0.3")), change(3, set("d", "127.0.0.4"))]);
  const path = join(directory, "zone.log");
  const text = await readFile(path, "utf8");
  await writeFile(path, text.slice(0, -10));
  expect((await read()).revision).toBe(2n);
  await writeFile(path, text.replace("127.0.0.3", "127.0.0.8"));
  const damaged = createZoneFile(directory, silentLog);
  expect((await damaged.read()).revision).toBe(1n);
  expect(damaged.needsCompaction).toBe(true);
});

test("does not add the changes of one zone to another", async () => {
  const file = await begin();
  await file.append([change(2, set("c", "127.0.0.3"))]);
  const log = await readFile(join(directory, "zone.log"), "utf8");
  const other = createZoneFile(directory, silentLog);
  const zone = await other.read();
  zone.apply({ ...change(9, set("z", "127.0.0.7")), reset: true });
  await other.write(zone.snapshot());
  expect(await readFile(join(directory, "zone.log"), "utf8")).toBe(log);
  expect(names(await read())).toEqual(["z 127.0.0.7"]);
});

test("appends only the change, until the log is as long as the zone", async () => {
  const file = createZoneFile(directory, silentLog);
  const zone = await file.read();
  expect(file.needsCompaction).toBe(true);
  const many = Array.from({ length: 20_000 }, (_, n) => set(`n${n}`, "127.0.0.1"));
  zone.apply({ ...change(1, ...many), reset: true });
  await file.write(zone.snapshot());
  const full = (await stat(join(directory, "zone.json"))).size;
  expect(file.needsCompaction).toBe(false);
  await file.append([change(2, set("n1", "127.0.0.2"))]);
  expect((await stat(join(directory, "zone.log"))).size).toBeLessThan(500);
  await file.append([change(3, ...many), change(4, ...many)]);
  expect((await stat(join(directory, "zone.log"))).size).toBeGreaterThan(full);
  expect(file.needsCompaction).toBe(true);
});
