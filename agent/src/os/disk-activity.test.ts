import { expect, test } from "vitest";
import { operationsOf } from "./disk-activity.ts";

const table = `   7       0 loop0 47789 9 6034958 21964 324315 178720 57495174 1013868 0 94344 1064723 0 0 0 0 41336 28890
   7     300 loop300 11 0 0 0 31 0 0 0 0 0 0
 254       0 vda 394113 30423 19762546 1861518 3500028 1150345 338082648 3005656 0 539912 5189492 982763 8034 757895088 191365 1303747 130953
`;

test.each([
  ["loop0", 0x700n, 47_789 + 324_315],
  ["a device with a large number", (7n << 8n) | (300n & 0xffn) | ((300n & 0xffffff00n) << 12n), 42],
  ["vda", 254n << 8n, 394_113 + 3_500_028],
  ["tmpfs, which has no device", 0x45n, undefined],
])("counts the reads and writes of %s", (_, device, operations) => {
  expect(operationsOf(table, device)).toBe(operations);
});
