import { expect, test } from "vitest";
import {
  attemptPrefix,
  backupPrefix,
  dataObjectOf,
  logObject,
  logPrefix,
  manifestObject,
  partNumber,
  partObject,
  partsFrom,
  servicePrefix,
} from "./object-names.ts";

const location = { service: "s-1", backup: "b-1", attempt: 2 };

test("keys start with their service and sort in sequence", () => {
  expect(servicePrefix("s-1")).toBe("services/s-1/");
  expect(backupPrefix("s-1", "b-1")).toBe("services/s-1/backups/b-1/");
  expect(attemptPrefix(location)).toBe("services/s-1/backups/b-1/2/");
  expect(manifestObject(location)).toBe("services/s-1/backups/b-1/2/manifest");
  expect(partObject(location, "base.tar", 7)).toBe("services/s-1/backups/b-1/2/base.tar/000007");
  expect(logPrefix({ service: "s-1", term: 3 })).toBe("services/s-1/log/0000000003/");
  expect(logObject({ service: "s-1", term: 3 }, 42)).toBe("services/s-1/log/0000000003/000000000042");
  const names = [1, 9, 10, 99, 100].map((sequence) => logObject({ service: "s-1", term: 3 }, sequence));
  expect(names.toSorted()).toEqual(names);
});

test("partsFrom returns consecutive parts of a stream", () => {
  const part = partObject(location, "base.tar", 9);
  expect(partNumber(part)).toBe(9);
  expect(partNumber(manifestObject(location))).toBeUndefined();
  expect(partNumber(logObject({ service: "s-1", term: 3 }, 42))).toBeUndefined();
  expect(partsFrom(part, 3)).toEqual([9, 10, 11].map((number) => partObject(location, "base.tar", number)));
});

test("keys of log and backups are parsed, of their own service only", () => {
  expect(dataObjectOf("s-1", logObject({ service: "s-1", term: 3 }, 42))).toEqual({
    kind: "log",
    term: 3,
    sequence: 42,
  });
  expect(dataObjectOf("s-1", partObject(location, "base.tar", 7))).toEqual({ kind: "backup", backup: "b-1" });
  for (const other of [logObject({ service: "s-2", term: 3 }, 42), "services/s-1/log/3/4", "services/s-1/keys/1", ""])
    expect(dataObjectOf("s-1", other)).toBeUndefined();
});
