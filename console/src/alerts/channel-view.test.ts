import type { Channel, ChannelDelivery } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { channelStateOf, deliveryResultOf, targetOf } from "./channel-view.ts";

test.each([
  [{ address: "team@example.com", url: null }, "team@example.com"],
  [{ address: null, url: "https://example.com/alerts" }, "https://example.com/alerts"],
])("the target of %j is %s", (config, text) => expect(targetOf(partial<Channel>({ config }))).toBe(text));

test.each([
  ["email", null, null, "not confirmed"],
  ["email", "2030-01-01T00:00:00Z", null, "ready"],
  ["email", "2030-01-01T00:00:00Z", "No mail server is set.", "warning"],
  ["webhook", null, null, "ready"],
] as const)("a channel of the type %s, confirmed at %s, with the warning %s, is %s", (type, time, warning, text) =>
  expect(channelStateOf(partial<Channel>({ type, confirmed_at: time, warning })).text).toBe(text),
);

test.each([
  [204, null, "204", "good"],
  [null, null, "sent", "good"],
  [500, "The endpoint responded with 500.", "500", "bad"],
  [null, "The connection was refused.", "failed", "bad"],
] as const)(
  "an attempt with the status %s and the error %s reads as %s",
  (response_status, error_message, text, tone) =>
    expect(deliveryResultOf(partial<ChannelDelivery>({ response_status, error_message }))).toEqual({ text, tone }),
);
