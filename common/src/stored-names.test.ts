import { describe, expect, test } from "vitest";
import { storedFormat } from "./stored-names.ts";

const format = storedFormat({
  "spec.nodes.*.failoverCandidate": "vouches",
  "spec.primaryChange": "succession",
  "spec.primaryChange.requested": "asked",
  "status.warnings.*.reported": "told",
});

const inCode = {
  spec: {
    nodes: [{ id: "a", failoverCandidate: true }, { id: "b" }],
    primaryChange: { requested: 1, to: "b" },
    told: 1,
  },
  status: { warnings: { told: { since: 1, reported: true }, disk: { since: 2, reported: false } }, vouches: "no path" },
};
const stored = {
  spec: { nodes: [{ id: "a", vouches: true }, { id: "b" }], succession: { asked: 1, to: "b" }, told: 1 },
  status: { warnings: { told: { since: 1, told: true }, disk: { since: 2, told: false } }, vouches: "no path" },
};

describe("stored names", () => {
  test("writes the stored key of each field of the table, and no other", () => {
    expect(JSON.parse(format.format(inCode))).toEqual(stored);
  });

  test("reads the stored keys under their names in code", () => {
    expect(format.parse(JSON.stringify(stored))).toEqual(inCode);
  });

  test("keeps the order of keys, absent fields and values that are no objects", () => {
    expect(format.format({ spec: { primaryChange: null, nodes: [], a: 1 } })).toBe(
      '{"spec":{"succession":null,"nodes":[],"a":1}}',
    );
    expect(format.parse('{"spec":{}}')).toEqual({ spec: {} });
    expect(format.parse("[1]")).toEqual([1]);
  });

  test("reads a key named __proto__ as a field of its own", () => {
    const parsed = storedFormat<Record<string, unknown>>({ "a.b": "c" }).parse('{"__proto__":{"x":1},"a":{"c":2}}');
    expect(Object.keys(parsed)).toEqual(["__proto__", "a"]);
    expect(parsed["x"]).toBeUndefined();
  });
});
