import { expect, test } from "vitest";
import { admitRoot } from "./admission.ts";

const gib = 1024 ** 3;
test.each([
  [2, 0, undefined],
  [0.2, 0, /0\.2 GiB of 20\.0 GiB are free, a new machine needs 1\.3 GiB/],
  [2, 5, /needs 2\.5 GiB/],
])("a pool with %d GiB free and %d machines that are yet to write", (free, youngMachines, reason) => {
  const refused = admitRoot(4 * gib, {
    poolStatus: "Created",
    poolBytes: 20 * gib,
    poolFreeBytes: free * gib,
    youngMachines,
  });
  if (reason === undefined) expect(refused).toBeUndefined();
  else expect(refused).toMatch(reason);
});

test("a pool that is out of order takes no machine, however much of it is free", () => {
  const room = { poolStatus: "Unavailable", poolBytes: 20 * gib, poolFreeBytes: 20 * gib, youngMachines: 0 };
  expect(admitRoot(4 * gib, room)).toMatch(/out of order: Incus says Unavailable/);
});

test("a root takes a whole pool at the most, however little is written there", () => {
  const room = { poolStatus: "Created", poolBytes: 20 * gib, poolFreeBytes: 20 * gib, youngMachines: 0 };
  expect(admitRoot(20 * gib, room)).toBeUndefined();
  expect(admitRoot(21 * gib, room)).toMatch(/pool has 20\.0 GiB in all; a root of 21\.0 GiB was asked for/);
});
