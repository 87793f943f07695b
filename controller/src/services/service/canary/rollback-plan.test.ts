import { describe, expect, test } from "vitest";
import {
  recoveryAdvice,
  type ImageCanary,
  type FencedNode,
  writeFenceOf,
  reasonToRetainData,
} from "./rollback-plan.ts";

const canary: ImageCanary = { operationId: "op-1", generation: 8 };
const node: FencedNode = { isUntouched: true, isConnected: true, storedGeneration: 8 };

describe("whether it is certain that no client writes after the snapshot", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  test.each<[string, ImageCanary | undefined, FencedNode[], boolean, boolean | undefined]>([
    ["it is, once no machine would admit a client",      canary,                      [node, node],                                false, true],
    ["settings that came after those do as well",         canary,                      [{ ...node, storedGeneration: 9 }],            false, true],
    ["not where users or databases are being changed",    canary,                      [node],                                      true,  false],
    ["not yet with older settings",                       canary,                      [node, { ...node, storedGeneration: 7 }],      false, undefined],
    ["not with a silent agent",                           canary,                      [{ ...node, isConnected: false }],               false, undefined],
    ["too late once the machine has its order to stop",   canary,                      [{ ...node, isUntouched: false }],           false, undefined],
    ["decided once",                                      { ...canary, writesFenced: false }, [node],                                     false, undefined],
    ["undefined without a canary",                        undefined,                  [node],                                      false, undefined],
  ])("%s", (_name, of, nodes, isChanging, fenced) => {
    expect(writeFenceOf(of, nodes, isChanging)).toBe(fenced);
  });
});

describe("the data are rolled back with the image", () => {
  test.each<[string, ImageCanary | undefined, string | undefined]>([
    ["when no client was admitted, for certain", { ...canary, writesFenced: true }, undefined],
    ["not when that is not certain", { ...canary, writesFenced: false }, "not certain"],
    ["not when it is undecided", canary, "not certain"],
    ["not when clients were admitted", undefined, "their writes are retained"],
  ])("%s", (_name, of, reason) => {
    if (reason === undefined) expect(reasonToRetainData(of)).toBeUndefined();
    else expect(reasonToRetainData(of)).toContain(reason);
  });
});

test("the error of an old engine that fails too names the data that exist", () => {
  expect(recoveryAdvice({ outcome: "restored", reason: "" })).toMatch(
    /^The data are as they were before the update\. Restore/,
  );
  expect(recoveryAdvice({ outcome: "taken", reason: "Clients had been admitted." })).toContain(
    "is retained. Clients had been admitted. ",
  );
  expect(recoveryAdvice({ outcome: "none", reason: "The disk is full." })).toContain(
    "no snapshot from before the update. The disk is full. ",
  );
  expect(recoveryAdvice(undefined)).toContain("no snapshot from before the update. Restore");
  expect(recoveryAdvice(undefined, 1_000)).toMatch(
    /Restore the service to 1970-01-01T00:00:01\.000Z, before the update, or/,
  );
});
