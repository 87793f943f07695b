import { expect, test } from "vitest";
import { alertMail } from "./mail-messages.ts";

const data = {
  id: "0198f2a4-a1c0-7d3e-8b52-4c9f0e7a6d18",
  service_name: "orders",
  alert_name: "<b>disk</b>\r\nBcc: x",
  severity: "critical",
  metric: "disk",
  condition: "gt",
  threshold: 80,
  current_value: 93.2,
  state: "firing",
  fired_at: "2026-11-21T09:40:00.000Z",
};
const event = { id: "event", type: "alert.fired", occurredAt: 0, data };

test("a mail reports the alert as text and HTML, with users' names escaped", () => {
  const mail = alertMail(event, "https://platform.example");
  expect(mail.subject).toContain("orders: <b>disk</b>");
  expect(mail.text).toContain("Condition: disk gt 80");
  expect(mail.text).toContain("<b>disk</b> Bcc: x");
  expect(mail.html).toContain("&lt;b&gt;disk&lt;/b&gt;");
  expect(mail.html).not.toContain("<b>");
  expect(mail.thread).toBe(data.id);
});

test("a mail reports when and why an alert was resolved", () => {
  const over = { ...data, state: "resolved", resolved_at: "2026-11-21T10:00:00.000Z", reason: "condition_false" };
  const mail = alertMail({ ...event, type: "alert.resolved", data: over }, "https://platform.example");
  expect(mail.subject).toContain("is resolved");
  expect(mail.text).toContain("2026-11-21T10:00:00.000Z (condition_false)");
});

test("a test mail says that it is a test", () => {
  const test = { ...event, type: "channel.test", data: { message: "x" } };
  expect(alertMail(test, "https://platform.example").subject).toBe("[Holdfast] test of your alert channel");
});
