import { expect, test } from "vitest";
import type { DataField } from "#kernel/outbox/event-definition.ts";
import { eventTypes } from "./systems.ts";

const fits: Readonly<Record<DataField["type"], (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  boolean: (value) => typeof value === "boolean",
  "string[]": (value) => Array.isArray(value) && value.every((each) => typeof each === "string"),
  "object[]": (value) => Array.isArray(value) && value.every((each) => typeof each === "object" && each !== null),
  uuid: (value) => typeof value === "string" && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value),
  time: (value) => typeof value === "string" && new Date(value).toISOString() === value,
};

test.each([...eventTypes])("the example of %s has exactly the declared data", (_, { data, example }) => {
  for (const [name, { type, optional, nullable }] of Object.entries(data)) {
    if (example[name] === null) expect(nullable, name).toBe(true);
    else if (name in example) expect(fits[type](example[name]), name).toBe(true);
    else expect(optional, name).toBe(true);
  }
  expect(Object.keys(example).filter((name) => !(name in data))).toEqual([]);
});

// Events of a service are found by this name.
test("the id of an event's service is service_id", () => {
  const names = [...eventTypes.values()].flatMap(({ data }) => Object.keys(data));
  const serviceIds = new Set(names.filter((name) => /service.*_id$/.test(name)));
  // `source_service_id` is the source of a restore, which is not the service of the event.
  expect([...serviceIds].toSorted()).toEqual(["service_id", "source_service_id"]);
});
