import { expect, test } from "vitest";
import {
  changedDestination,
  type DestinedSecret,
  openFor,
  sealFor,
  secretAfter,
  secretMask,
} from "./destined-secret.ts";
import { createSealer } from "./sealer.ts";

const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 1)]]) });
const objectKey = "/holdfast/v1/thing/1";
const home = { base_url: "https://a.example.com/v1", ca_certificate: "" };
const bindingOf = (destination: object) => ({ objectKey, destination: { ...destination } });

test("a secret opens only for its destination and its object", () => {
  const sealed = sealFor(sealer, bindingOf(home), "secret");
  expect(openFor(sealer, bindingOf(home), sealed)).toBe("secret");
  expect(() => openFor(sealer, bindingOf({ ...home, base_url: "https://b.example.com/v1" }), sealed)).toThrow();
  expect(() => openFor(sealer, { ...bindingOf(home), objectKey: "/holdfast/v1/thing/2" }, sealed)).toThrow();
  // The legacy label does not open a bound secret.
  const elsewhere = bindingOf({ ...home, ca_certificate: "other" });
  expect(() => openFor(sealer, { ...elsewhere, legacyLabel: objectKey }, sealed)).toThrow();
});

test("a secret of an earlier version is bound by the next change", () => {
  const binding = { ...bindingOf(home), legacyLabel: objectKey };
  const sealed = sealer.seal("secret", objectKey) as DestinedSecret;
  expect(openFor(sealer, binding, sealed)).toBe("secret");
  const after = secretAfter(sealer, { field: "key", provided: undefined, stored: { sealed, binding }, binding });
  expect(openFor(sealer, bindingOf(home), after)).toBe("secret");
});

test("a secret written beside an older controller opens there, and is bound by the next change", () => {
  const binding = { ...bindingOf(home), legacyLabel: objectKey };
  let hasOlder = true;
  const rolling = { ...sealer, mayStore: () => !hasOlder };
  const sealed = sealFor(rolling, binding, "secret");
  // A controller from before bound secrets uses the object key only.
  expect(sealer.open(sealed, objectKey)).toBe("secret");
  expect(openFor(rolling, binding, sealed)).toBe("secret");
  // A secret that was never sealed without a destination has no legacy label.
  expect(openFor(sealer, bindingOf(home), sealFor(rolling, bindingOf(home), "new"))).toBe("new");
  hasOlder = false;
  const after = secretAfter(rolling, { field: "key", provided: undefined, stored: { sealed, binding }, binding });
  expect(() => sealer.open(after, objectKey)).toThrow();
  expect(openFor(sealer, bindingOf(home), after)).toBe("secret");
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["the scheme",                    { base_url: "http://a.example.com/v1" },      ["base_url"]],
  ["the host",                      { base_url: "https://b.example.com/v1" },     ["base_url"]],
  ["the port",                      { base_url: "https://a.example.com:444/v1" }, ["base_url"]],
  ["the path",                      { base_url: "https://a.example.com/v2" },     ["base_url"]],
  ["no URL",                        { base_url: undefined },                      ["base_url"]],
  ["authorities",                   { ca_certificate: "PEM" },                    ["ca_certificate"]],
  ["a new member",                  { unverified: true },                         ["unverified"]],
  ["two of them",                   { base_url: "x", ca_certificate: "y" },       ["base_url", "ca_certificate"]],
] as const)("a change of %s needs the secret again", (_, change, names) => {
  const after = { ...home, ...change };
  expect(changedDestination(home, after)).toEqual(names);
  const stored = { sealed: sealFor(sealer, bindingOf(home), "secret"), binding: bindingOf(home) };
  const request = { field: "api_key", stored, binding: bindingOf(after) };
  expect(() => secretAfter(sealer, { ...request, provided: undefined })).toThrow(/^INVALID_REQUEST: api_key: must be given again/);
  expect(() => secretAfter(sealer, { ...request, provided: secretMask })).toThrow(/api_key: must be given again/);
  const replaced = secretAfter(sealer, { ...request, provided: "other" });
  expect(openFor(sealer, bindingOf(after), replaced)).toBe("other");
});

test("a missing secret is a fault of its field", () => {
  const request = { field: "api_key", provided: undefined, stored: undefined, binding: bindingOf(home) };
  expect(() => secretAfter(sealer, request)).toThrow(/api_key: must be given/);
});
