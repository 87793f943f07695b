import { expect, test } from "vitest";
import { eventDetail, eventTitle, serviceOf } from "./event-view.ts";

test("an event has a title and details for users", () => {
  expect(eventTitle("service.status_changed")).toBe("Service status changed");
  expect(eventDetail({ service_id: "1", from: "Pending", nested: {}, progress_pct: 3 })).toBe(
    "from: Pending, progress pct: 3",
  );
  expect(serviceOf({ service_id: "1" })).toBe("1");
  expect(serviceOf({ service_id: 1 })).toBeUndefined();
});
