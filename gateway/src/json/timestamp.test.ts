import { expect, test } from "vitest";
import { timestampFault } from "./timestamp.ts";

test("a time without an offset is refused with what to add", () => {
  for (const text of ["2030-01-31T12:00:00", "2030-01-31T12:00:00.5"])
    expect(timestampFault(text)).toBe("has no offset from UTC: add Z or an offset such as +02:00");
  for (const text of ["2030-01-31 12:00:00Z", "2030-02-30T12:00:00", "yesterday", ""])
    expect(timestampFault(text)).toBe("must be an RFC 3339 time such as 2030-01-31T12:00:00Z");
});
