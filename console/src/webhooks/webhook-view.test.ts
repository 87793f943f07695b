import { partial } from "@holdfast/testing/partial.ts";
import type { Delivery } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { deliveryTone, eventsOf, eventsText, responseText } from "./webhook-view.ts";

test.each([
  ["", null],
  [" \n", null],
  ["service.running, service.error", ["service.running", "service.error"]],
  ["service.running\nservice.error\n", ["service.running", "service.error"]],
])("the text %j has the types %j", (text, types) => expect(eventsOf(text)).toEqual(types));

test("a webhook without types gets all events", () => {
  expect(eventsText(null)).toBe("all, except opt-in events");
  expect(eventsText(["service.error"])).toBe("service.error");
});

test.each([
  [204, null, "204", "good"],
  [500, null, "500", "bad"],
  [null, "The connection was refused.", "The connection was refused.", "bad"],
  [null, null, "in progress", "busy"],
] as const)("an attempt with status %s and error %s reads as %s", (response_status, error_message, text, tone) => {
  const delivery = partial<Delivery>({ response_status, error_message });
  expect([responseText(delivery), deliveryTone(delivery)]).toEqual([text, tone]);
});
