import { describe, expect, test } from "vitest";
import { recoveryAdvice, type ImageTrial, type SealedNode, sealOf, reasonToKeepData } from "./way-back.ts";

const trial: ImageTrial = { operationId: "op-1", generation: 8 };
const node: SealedNode = { isUntouched: true, isHeard: true, keptGeneration: 8 };

describe("whether it is certain that no client writes after the snapshot", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  test.each<[string, ImageTrial | undefined, SealedNode[], boolean, boolean | undefined]>([
    ["it is, once every machine would admit nobody",     trial,                      [node, node],                                false, true],
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
    ["when no client was admitted, for certain", { ...trial, sealed: true }, undefined],
    ["not when that is not certain", { ...trial, sealed: false }, "not certain"],
    ["not when it is not known", trial, "not certain"],
    ["not when clients were admitted", undefined, "what they wrote is kept"],
  ])("%s", (_name, of, reason) => {
    if (reason === undefined) expect(reasonToKeepData(of)).toBeUndefined();
    else expect(reasonToKeepData(of)).toContain(reason);
  });
});

test("an old engine that does not come up either says which data are there", () => {
  expect(recoveryAdvice({ outcome: "restored", reason: "" })).toMatch(
    /^The data are as they were before the update\. Restore/,
  );
  expect(recoveryAdvice({ outcome: "taken", reason: "Clients had been admitted." })).toContain(
    "is kept. Clients had been admitted. ",
  );
  expect(recoveryAdvice({ outcome: "none", reason: "The disk is full." })).toContain(
    "no snapshot from before the update. The disk is full. ",
  );
  expect(recoveryAdvice(undefined)).toContain("no snapshot from before the update. Restore");
  expect(recoveryAdvice(undefined, 1_000)).toMatch(
    /Restore the service to 1970-01-01T00:00:01\.000Z, before the update, or/,
  );
});
