import { expect, test } from "vitest";
import { admitRoot } from "./admission.ts";

const gib = 1024 ** 3;
test.each([
  [2, 0, undefined],
  [0.2, 0, /0\.2 GiB of 20\.0 GiB are free, a new machine needs 1\.3 GiB/],
  [2, 5, /needs 2\.5 GiB/],
])("a pool with %d GiB free and %d machines that are yet to write", (free, youngMachines, reason) => {
  const refused = admitRoot({ poolStatus: "Created", poolBytes: 20 * gib, poolFreeBytes: free * gib, youngMachines });
  if (reason === undefined) expect(refused).toBeUndefined();
  else expect(refused).toMatch(reason);
});

test("a pool that is out of order takes no machine, however much of it is free", () => {
  const room = { poolStatus: "Unavailable", poolBytes: 20 * gib, poolFreeBytes: 20 * gib, youngMachines: 0 };
  expect(admitRoot(room)).toMatch(/out of order: Incus says Unavailable/);
});
