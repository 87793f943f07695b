import { expect, test } from "vitest";
import { eventFaults, urlFaults } from "./check-webhook.ts";

const types = new Set(["service.error", "service.running", "alert.fired"]);
const detailsOf = (...names: string[]) => eventFaults(names, types).map(({ field, detail }) => `${field} ${detail}`);

test("each unknown type of event is named, with the one that is meant", () => {
  expect(detailsOf("service.error", "alert.fired")).toEqual([]);
  expect(detailsOf("servce.error", "alert.fired", "x")).toEqual([
    'events[0] must be a type of event, and "servce.error" is none: did you mean service.error?',
    'events[2] must be a type of event, and "x" is none: docs/reference/events.md lists all',
  ]);
  expect(detailsOf(`"${"é".repeat(500)}`)[0]?.length).toBeLessThan(200);
});

test.each([
  [undefined, []],
  ["https://example.com/hook", []],
  ["foo", ["must begin with http:// or https://"]],
  ["https://user:secret@example.com", ["must not have a user name or password"]],
])("the URL %j has the faults %j", (url, details) =>
  expect(urlFaults(url).map(({ detail }) => detail)).toEqual(details),
);
