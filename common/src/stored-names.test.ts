import { describe, expect, test } from "vitest";
import { storedFormat } from "./stored-names.ts";

const format = storedFormat({
  "spec.nodes.*.failoverCandidate": "candidate",
  "spec.primaryChange": "change",
  "spec.primaryChange.requested": "since",
  "status.warnings.*.reported": "sent",
});

const inCode = {
  spec: {
    nodes: [{ id: "a", failoverCandidate: true }, { id: "b" }],
    primaryChange: { requested: 1, to: "b" },
    sent: 1,
  },
  status: {
    warnings: { sent: { since: 1, reported: true }, disk: { since: 2, reported: false } },
    candidate: "no path",
  },
};
const stored = {
  spec: { nodes: [{ id: "a", candidate: true }, { id: "b" }], change: { since: 1, to: "b" }, sent: 1 },
  status: { warnings: { sent: { since: 1, sent: true }, disk: { since: 2, sent: false } }, candidate: "no path" },
};

describe("stored names", () => {
  test("writes the stored key of each field of the table, and no other", () => {
    expect(JSON.parse(format.format(inCode))).toEqual(stored);
  });

  test("reads the stored keys under their names in code", () => {
    expect(format.parse(JSON.stringify(stored))).toEqual(inCode);
  });

  test("preserves the order of keys, absent fields and values that are not objects", () => {
    expect(format.format({ spec: { primaryChange: null, nodes: [], a: 1 } })).toBe(
      '{"spec":{"change":null,"nodes":[],"a":1}}',
    );
    expect(format.parse('{"spec":{}}')).toEqual({ spec: {} });
    expect(format.parse("[1]")).toEqual([1]);
  });

  test("reads a key named __proto__ as an own field", () => {
    const parsed = storedFormat<Record<string, unknown>>({ "a.b": "c" }).parse('{"__proto__":{"x":1},"a":{"c":2}}');
    expect(Object.keys(parsed)).toEqual(["__proto__", "a"]);
    expect(parsed["x"]).toBeUndefined();
  });
});
