import { expect, test } from "vitest";
import { eventDetail, eventTitle, ownerNameOf, ownerOf, serviceOf } from "./event-view.ts";

test("an event has a title and details for users", () => {
  expect(eventTitle("service.status_changed")).toBe("Service status changed");
  expect(eventDetail({ service_id: "1", from: "Pending", nested: {}, progress_pct: 3 })).toBe(
    "from: Pending, progress pct: 3",
  );
  expect(eventDetail({ size_bytes: 4_893_854, reason: "", duration_seconds: 4.55, lines: 12_000 })).toBe(
    "size: 4.67 MiB, duration: 4.55 s, lines: 12,000",
  );
  expect(eventDetail({ app_name: "shop", status: "Error", reason: "It ended." })).toBe(
    "reason: It ended, status: Error",
  );
  expect(serviceOf({ service_id: "1" })).toBe("1");
  expect(serviceOf({ service_id: 1 })).toBeUndefined();
});

test("an alert has its name, its metric and its value, without ids and times", () => {
  const data = {
    id: "0198f2a4",
    since: "2026-11-21T09:35:00.000Z",
    state: "firing",
    metric: "disk",
    threshold: 90,
    alert_name: "disk nearly full",
    service_name: "orders",
    current_value: 93.2,
  };
  expect(eventDetail(data)).toBe("alert name: disk nearly full, metric: disk, current value: 93.2, threshold: 90");
  expect(ownerNameOf(data)).toBe("orders");
  expect(ownerNameOf({ app_name: "shop" })).toBe("shop");
  expect(ownerNameOf({})).toBeUndefined();
});

test.each([
  [{ service_id: "1", app_id: "2" }, "1"],
  [{ app_id: "2" }, "2"],
  [{ webhook_id: "3" }, undefined],
])("the owner of the event %j is %s", (data, id) => expect(ownerOf(data)).toBe(id));

test("an event of a sign-in is of its app, and not of the service with the users", () =>
  expect(ownerOf({ service_id: "1", app_id: "2", auth_id: "3" })).toBe("2"));
