import { expect, test } from "vitest";
import { countFacts, payloadOf, payloadText, settingsOf } from "./queue-view.ts";

test("a count has the messages by state, and the age of the oldest", () => {
  const result = { ready_messages: 1_200, inflight_messages: 3, dead_messages: 0, oldest_age_seconds: 90 };
  expect(countFacts(result)).toEqual([
    ["Ready", "1,200"],
    ["In flight", "3"],
    ["Delayed", "unknown"],
    ["Dead", "0"],
    ["Oldest message", "1 min"],
  ]);
  expect(countFacts(null)[4]).toEqual(["Oldest message", "none"]);
});

test("a long payload is cut", () => {
  expect(payloadText({ to: "ann" })).toBe('{"to":"ann"}');
  expect(payloadText({ text: "x".repeat(1_000) })).toHaveLength(401);
});

test.each(["", "[1]", "1", "{to: 1}"])("%j is not a payload", (text) =>
  expect(payloadOf(text)).toEqual({ fault: 'Is not a JSON object, such as {"to": "ann@example.com"}.' }),
);

test("a JSON object is a payload", () => expect(payloadOf('{"to": "ann"}')).toEqual({ payload: { to: "ann" } }));

test("a payload is sent and shown with all digits of its numbers", () => {
  const text = '{"big":12345678901234567890,"price":0.1}';
  const { payload } = payloadOf(text);
  expect([JSON.stringify(payload), payloadText(payload)]).toEqual([text, text]);
});

test("a number is not a payload", () => expect(payloadOf("12345678901234567890")).toHaveProperty("fault"));

test("a change has the edited settings alone", () => {
  expect(settingsOf({})).toEqual({});
  expect(settingsOf({ timeout: "60", hasDead: false })).toEqual({ visibility_timeout_seconds: 60, dlq_enabled: false });
});
