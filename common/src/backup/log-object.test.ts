import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { BackupDamaged } from "./backup-reader.ts";
import { newLogSecrets, openLog, sealLog } from "./log-object.ts";

const key = { id: "k1", secret: randomBytes(32) };
const header = {
  service: "s-1",
  term: 1,
  sequence: 7,
  branch: "1",
  from: "0/3000000",
  to: "0/4000000",
  time: "2026-01-01T00:00:00.000Z",
};
const keyOf = (id: string) => (id === key.id ? key.secret : undefined);
const log = randomBytes(50_000);

test("a log object round-trips, and is deterministic for the same secrets", () => {
  const secrets = newLogSecrets();
  const sealed = sealLog(log, header, key, secrets);
  expect(openLog(sealed, header, keyOf)).toEqual({ header, log });
  expect(sealLog(log, header, key, secrets).equals(sealed)).toBe(true);
  expect(sealLog(log, header, key, newLogSecrets()).equals(sealed)).toBe(false);
});

test("a changed, truncated, renumbered or foreign log object is rejected", () => {
  const sealed = sealLog(log, header, key, newLogSecrets());
  const refused = (bytes: Buffer, expected = header, keys = keyOf) =>
    expect(() => openLog(bytes, expected, keys)).toThrow(BackupDamaged);
  for (let i = 0; i < 200; i += 1) {
    const changed = Buffer.from(sealed);
    const at = i < 60 ? i : Math.floor(Math.random() * sealed.length);
    changed.writeUInt8(changed.readUInt8(at) ^ (1 << (i % 8)), at);
    refused(changed);
    refused(sealed.subarray(0, Math.floor(Math.random() * sealed.length)));
  }
  refused(Buffer.concat([sealed, Buffer.alloc(16)]));
  refused(sealed, { ...header, sequence: 8 });
  refused(sealed, { ...header, term: 2 });
  refused(sealed, { ...header, service: "s-2" });
  refused(sealed, header, () => undefined);
  refused(sealed, header, () => randomBytes(32));
});
