import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { claim, claimWork } from "./claim.ts";

test("a name is claimed once, and work again in the process that has it", async () => {
  const [name, work] = [randomUUID(), randomUUID()];
  expect([await claim(name), await claim(name)]).toEqual([true, false]);
  expect([await claimWork(work), await claimWork(work)]).toEqual([true, true]);
  expect(await claimWork(name)).toBe(false);
});
