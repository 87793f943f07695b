import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { currentVersion, newBackupKey, newDataKey, openDataKey, rotated, withoutUnused } from "./backup-key.ts";

const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const first = newBackupKey("service-1", "org", sealer, 0);

test("a data key is unwrapped by its version, also after a rotation", () => {
  const wrapped = newDataKey(first, "b-1", sealer);
  const after = rotated(first, sealer, 1);
  const opened = openDataKey(after, { id: "b-1", ...wrapped }, sealer);
  expect(opened).toHaveLength(32);
  expect(openDataKey(first, { id: "b-1", ...wrapped }, sealer)).toEqual(opened);
  expect(currentVersion(after).version).toBe(2);
  expect(newDataKey(after, "b-2", sealer).keyVersion).toBe(2);
});

test("each backup has its own data key, which is not unwrapped for another backup or service", () => {
  const one = newDataKey(first, "b-1", sealer);
  const two = newDataKey(first, "b-2", sealer);
  expect(openDataKey(first, { id: "b-1", ...one }, sealer)).not.toEqual(
    openDataKey(first, { id: "b-2", ...two }, sealer),
  );
  expect(() => openDataKey(first, { id: "b-2", ...one }, sealer)).toThrow();
  const otherService = { ...first, metadata: { ...first.metadata, id: "service-2" } };
  expect(() => openDataKey(otherService, { id: "b-1", ...one }, sealer)).toThrow();
});

test("unneeded versions are deleted, and the current one is retained", () => {
  const third = rotated(rotated(first, sealer, 1), sealer, 2);
  const wrapped = newDataKey(first, "b-1", sealer);
  const versions = (needed: number[]) =>
    withoutUnused(third, new Set(needed)).spec.versions.map(({ version }) => version);
  expect(versions([1])).toEqual([1, 3]);
  expect(versions([])).toEqual([3]);
  expect(() => openDataKey(withoutUnused(third, new Set()), { id: "b-1", ...wrapped }, sealer)).toThrow(
    /does not exist/,
  );
});

test("the stored object contains no key in plain text", () => {
  const wrapped = newDataKey(first, "b-1", sealer);
  const secret = openDataKey(first, { id: "b-1", ...wrapped }, sealer);
  const stored = JSON.stringify([first, wrapped]);
  for (const form of ["base64", "hex", "base64url"] as const) expect(stored).not.toContain(secret.toString(form));
});
