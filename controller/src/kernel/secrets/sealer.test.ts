import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { parseKeyring, createSealer, type Keyring } from "./sealer.ts";

const keys = new Map([
  ["v2", randomBytes(32)],
  ["v1", randomBytes(32)],
]);
const keyring: Keyring = { current: "v2", keys };

test("sealed text opens with its associated data, and reveals nothing", () => {
  const sealer = createSealer(keyring);
  const sealed = sealer.seal("pässword", "/holdfast/v1/user/1");
  expect(sealed).toMatch(/^sealed\.v2\.[\w-]+$/);
  expect(sealed).not.toContain("ssword");
  expect(sealer.seal("pässword", "/holdfast/v1/user/1")).not.toBe(sealed);
  expect(sealer.open(sealed, "/holdfast/v1/user/1")).toBe("pässword");
});

test("moved, changed, truncated or foreign text does not open", () => {
  const sealer = createSealer(keyring);
  const sealed = sealer.seal("password", "here");
  const flipped = sealed.slice(0, -2) + (sealed.at(-2) === "A" ? "B" : "A") + sealed.slice(-1);
  expect(() => sealer.open(sealed, "there")).toThrow("unable to authenticate");
  expect(() => sealer.open(flipped, "here")).toThrow("unable to authenticate");
  expect(() => sealer.open(sealed.slice(0, 20), "here")).toThrow("truncated");
  expect(() => sealer.open("password", "here")).toThrow("not a sealed text");
  expect(() => sealer.open(sealed.replace("v2", "v3"), "here")).toThrow("v3");
});

test("deterministic sealing gives equal texts for equal inputs, and opens there only", () => {
  const sealer = createSealer(keyring);
  const sealed = sealer.sealDeterministic("id", "here");
  expect(sealed).toMatch(/^sealed\.v2a\.[\w-]+$/);
  expect(createSealer(keyring).sealDeterministic("id", "here")).toBe(sealed);
  expect(sealer.open(sealed, "here")).toBe("id");
  for (const other of [sealer.sealDeterministic("ie", "here"), sealer.sealDeterministic("id", "there")])
    expect(other.slice(0, 28)).not.toBe(sealed.slice(0, 28));
  expect(() => sealer.open(sealed, "there")).toThrow("unable to authenticate");
  expect(() => sealer.open(sealed.replace("v2a", "v2"), "here")).toThrow("unable to authenticate");
});

test("after a key rotation old texts open and hashes stay the same", () => {
  const old = createSealer({ ...keyring, current: "v1", keys: new Map([...keys].filter(([v]) => v === "v1")) });
  const sealer = createSealer(keyring);
  expect(sealer.open(old.seal("x", "a"), "a")).toBe("x");
  expect(sealer.open(old.sealDeterministic("x", "a"), "a")).toBe("x");
  expect(sealer.keyedHash("token", "t")).toBe(old.keyedHash("token", "t"));
});

test("hashes differ by purpose and value", () => {
  const sealer = createSealer(keyring);
  const hashes = [sealer.keyedHash("a", "x"), sealer.keyedHash("b", "x"), sealer.keyedHash("a", "y")];
  expect(new Set(hashes).size).toBe(3);
  expect(hashes[0]).toMatch(/^[0-9a-f]{64}$/);
});

test.each([
  ["{}", "current"],
  ['{"current": "v1", "keys": {"v2": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}', "not among"],
  ['{"current": "v1", "keys": {"v1": "AAAA"}}', "3 bytes"],
  ['{"current": "x", "keys": {"x": "AAAA"}}', "not a version"],
])("the key file %s is refused", (text, why) => {
  expect(() => parseKeyring(text)).toThrow(why);
});
