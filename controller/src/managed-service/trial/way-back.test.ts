import { describe, expect, test } from "vitest";
import { adviceOf, type ImageTrial, type SealedNode, sealOf, whyDataStay } from "./way-back.ts";

const trial: ImageTrial = { operationId: "op-1", generation: 8 };
const node: SealedNode = { isUntouched: true, isHeard: true, keptGeneration: 8 };

describe("whether it is certain that no client writes after the snapshot", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  test.each<[string, ImageTrial | undefined, SealedNode[], boolean, boolean | undefined]>([
    ["it is, once every machine would let nobody in",     trial,                      [node, node],                                false, true],
    ["settings that came after those do as well",         trial,                      [{ ...node, keptGeneration: 9 }],            false, true],
    ["not where users or databases are being changed",    trial,                      [node],                                      true,  false],
    ["not known yet of older settings",                   trial,                      [node, { ...node, keptGeneration: 7 }],      false, undefined],
    ["not known of an agent that is silent",              trial,                      [{ ...node, isHeard: false }],               false, undefined],
    ["too late once the machine was told to stop",        trial,                      [{ ...node, isUntouched: false }],           false, undefined],
    ["decided once",                                      { ...trial, sealed: false }, [node],                                     false, undefined],
    ["no question where no image is tried",               undefined,                  [node],                                      false, undefined],
  ])("%s", (_name, of, nodes, isChanging, sealed) => {
    expect(sealOf(of, nodes, isChanging)).toBe(sealed);
  });
});

describe("the data go back with the image", () => {
  test.each<[string, ImageTrial | undefined, string | undefined]>([
    ["when no client was let in, for certain", { ...trial, sealed: true }, undefined],
    ["not when that is not certain", { ...trial, sealed: false }, "not certain"],
    ["not when it is not known", trial, "not certain"],
    ["not when clients were let in", undefined, "what they wrote is kept"],
  ])("%s", (_name, of, reason) => {
    if (reason === undefined) expect(whyDataStay(of)).toBeUndefined();
    else expect(whyDataStay(of)).toContain(reason);
  });
});

test("an old engine that does not come up either says which data are there", () => {
  expect(adviceOf({ outcome: "restored", reason: "" })).toMatch(
    /^The data are as they were before the update\. Restore/,
  );
  expect(adviceOf({ outcome: "taken", reason: "Clients had been let in." })).toContain(
    "is kept. Clients had been let in. ",
  );
  expect(adviceOf({ outcome: "none", reason: "The disk is full." })).toContain(
    "no snapshot from before the update. The disk is full. ",
  );
  expect(adviceOf(undefined)).toContain("no snapshot from before the update. Restore");
});
