import { expect, test } from "vitest";
import { createEndpointSlots } from "./endpoint-slots.ts";

/** Endpoints are named `<organization><number>`. */
const slotsOf = (limits = { total: 10, organization: 6, endpoint: 4, failing: 1 }) =>
  createEndpointSlots((id) => id[0], limits);

test("each endpoint gets as much as it, its organization and all may have", () => {
  const slots = slotsOf();
  for (const id of ["a1", "a2", "b1", "b2"]) slots.expect(id, 0);
  expect(slots.take(0)).toEqual([
    { webhookId: "a1", room: 4 },
    { webhookId: "a2", room: 2 },
    { webhookId: "b1", room: 4 },
  ]);
});

test("who was served is the last of the next turn", () => {
  const slots = slotsOf({ total: 1, organization: 1, endpoint: 1, failing: 1 });
  for (const id of ["a1", "b1", "c1"]) slots.expect(id, 0);
  const served = Array.from({ length: 6 }, () => {
    const rooms = slots.take(0);
    slots.release(rooms);
    const { webhookId } = rooms[0] ?? { webhookId: "" };
    slots.expect(webhookId, 0);
    return webhookId;
  });
  expect(served).toEqual(["a1", "b1", "c1", "a1", "b1", "c1"]);
});

test("an endpoint that fails has one attempt in flight until one succeeds", () => {
  const slots = slotsOf();
  const rooms = () => {
    slots.expect("a1", 0);
    const rooms = slots.take(0);
    slots.release(rooms);
    return rooms.map(({ room }) => room);
  };
  slots.begin("a1", "x");
  slots.end("a1", "x", false);
  expect(rooms()).toEqual([1]);
  slots.begin("a1", "y");
  expect(rooms()).toEqual([]);
  slots.end("a1", "y", true);
  expect(rooms()).toEqual([4]);
});

test("what is expected later is not looked at earlier, and what has no room wakes nobody", () => {
  const slots = slotsOf({ total: 1, organization: 1, endpoint: 1, failing: 1 });
  slots.expect("a1", 500);
  expect(slots.take(499)).toEqual([]);
  expect(slots.nextAt()).toBe(500);
  slots.begin("b1", "x");
  expect(slots.nextAt()).toBe(Number.POSITIVE_INFINITY);
  slots.end("b1", "x", true);
  expect(slots.take(500)).toEqual([{ webhookId: "a1", room: 1 }]);
});

test("an endpoint that went is not looked at again", () => {
  const slots = slotsOf();
  slots.expect("a1", 0);
  slots.remove("a1");
  expect(slots.take(0)).toEqual([]);
});

test("what has just come begins at once, unless others are before it, are being fetched, or there is no room", () => {
  const slots = slotsOf();
  expect(slots.tryBegin("a1", "x", 0)).toBe(true);
  expect(slots.inFlight([{ webhookId: "a1", room: 1 }])).toEqual(["x"]);
  slots.expect("a1", 500);
  expect(slots.tryBegin("a1", "y", 499)).toBe(true);
  expect(slots.tryBegin("a1", "z", 500)).toBe(false);
  const rooms = slots.take(500);
  expect(rooms).toEqual([{ webhookId: "a1", room: 2 }]);
  expect(slots.tryBegin("a1", "z", 500)).toBe(false);
  slots.release(rooms);
  expect(slots.tryBegin("a1", "z", 500)).toBe(true);
  expect(slots.tryBegin("a1", "u", 500)).toBe(true);
  expect(slots.tryBegin("a1", "v", 500)).toBe(false);
  expect(slots.tryBegin("a2", "w", 500)).toBe(true);
});
