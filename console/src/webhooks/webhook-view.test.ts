import type { ApiDocument } from "../generic/document.ts";
import { partial } from "@holdfast/testing/partial.ts";
import type { Delivery } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { deliveryTone, eventsOf, eventsText, eventTypesOf, responseText, withEvent } from "./webhook-view.ts";

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

test("the types of events are those of the API description", () => {
  const schema = { $ref: "#/components/schemas/NewWebhook" };
  const events = { type: ["array", "null"], items: { type: "string", enum: ["service.error", "alert.fired"] } };
  const operation = { requestBody: { content: { "application/json": { schema } } } };
  const document = partial<ApiDocument>({
    paths: { "/webhooks": { post: operation } },
    components: { schemas: { NewWebhook: { properties: { events } } } },
  });
  expect(eventTypesOf(document)).toEqual(["service.error", "alert.fired"]);
  expect(eventTypesOf(partial<ApiDocument>({ paths: {}, components: { schemas: {} } }))).toEqual([]);
});

test("a type is added to the text once, and removed from it", () => {
  expect(withEvent("", "service.error", true)).toBe("service.error");
  expect(withEvent("alert.fired, service.error", "service.error", true)).toBe("alert.fired\nservice.error");
  expect(withEvent("alert.fired\nservice.error", "alert.fired", false)).toBe("service.error");
});
