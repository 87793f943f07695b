import { expect, test } from "vitest";
import { createEndpointSlots } from "./endpoint-slots.ts";

const roomy = { total: 1_000, organization: 40, endpoint: 8, starting: 4, turn: 8, unwellPart: 1 / 4 };
const single = { total: 1, organization: 1, endpoint: 1, starting: 1, turn: 1, unwellPart: 1 };

/** Endpoints are named `<organization><number>`. */
const slotsOf = (limits: Partial<typeof roomy> = {}) => createEndpointSlots((id) => id[0], { ...roomy, ...limits });
type Slots = ReturnType<typeof slotsOf>;

/** What the endpoints would get if something of them were due. */
function roomsOf(slots: Slots, ...ids: string[]): [string, number][] {
  for (const id of ids) slots.expect(id, 0);
  const rooms = slots.take(0);
  slots.release(rooms);
  return rooms.map(({ webhookId, room }) => [webhookId, room]);
}

/** An attempt of the endpoint that ended. */
function attempted(slots: Slots, id: string, succeeded: boolean): void {
  slots.begin(id, "attempt");
  slots.end(id, "attempt", succeeded);
}

test("each endpoint gets its share, and less where its organization has little left", () => {
  const slots = slotsOf({ organization: 12 });
  for (const id of ["a1", "a2", "a3", "b1"]) slots.expect(id, 0);
  expect(slots.take(0)).toEqual([
    { webhookId: "a1", room: 3 },
    { webhookId: "a2", room: 2 },
    { webhookId: "a3", room: 2 },
    { webhookId: "b1", room: 3 },
  ]);
});

test.each([
  ["endpoints of an organization", { total: 1_000, organization: 40 }, "a", "a20"],
  ["organizations", { total: 200, organization: 40 }, "abcdef", "g1"],
])("however many %s keep all that they get, there is room for another one", (_, limits, organizations, another) => {
  const slots = slotsOf(limits);
  for (let turn = 0; turn < 8; turn += 1)
    for (const organization of organizations)
      for (let n = 0; n < 20; n += 1) slots.tryBegin(`${organization}${n}`, String(turn), 0);
  expect(slots.tryBegin(another, "first", 0)).toBe(true);
});

test("endpoints that all take what they get at each turn leave room for the last one", () => {
  const slots = slotsOf({ organization: 128, endpoint: 16, starting: 16, turn: 4 });
  const greedy = Array.from({ length: 19 }, (_, n) => `a${n}`);
  for (let turn = 0; turn < 8; turn += 1)
    for (const [id, room] of roomsOf(slots, ...greedy))
      for (let n = 0; n < room; n += 1) slots.begin(id, `${turn} ${n}`);
  expect(roomsOf(slots, "a19")).toEqual([["a19", 4]]);
});

test("who was served is the last of the next turn", () => {
  const slots = slotsOf(single);
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

test("an endpoint has less with each failure and more with each success", () => {
  const slots = slotsOf();
  const rooms = (...outcomes: boolean[]) => {
    for (const outcome of outcomes) attempted(slots, "a1", outcome);
    return roomsOf(slots, "a1");
  };
  expect(rooms()).toEqual([["a1", 4]]);
  expect(rooms(false)).toEqual([["a1", 2]]);
  expect(rooms(false)).toEqual([["a1", 1]]);
  expect(rooms(false)).toEqual([["a1", 1]]);
  expect(rooms(true, true, true)).toEqual([["a1", 4]]);
  expect(rooms(true, true, true, true, true, true)).toEqual([["a1", 8]]);
});

test("endpoints that are unwell have a part of the organization together, in turns, and the others all the rest", () => {
  const slots = slotsOf({ organization: 40, unwellPart: 1 / 20 });
  const sick = ["a1", "a2", "a3"];
  for (const id of sick) for (const outcome of [false, false]) attempted(slots, id, outcome);
  expect(roomsOf(slots, ...sick)).toEqual([
    ["a1", 1],
    ["a2", 1],
  ]);
  slots.begin("a1", "x");
  slots.begin("a2", "y");
  expect(roomsOf(slots, "a1", "a2")).toEqual([]);
  expect(roomsOf(slots, "a4")).toEqual([["a4", 4]]);
  slots.end("a1", "x", false);
  expect(roomsOf(slots, "a1")).toEqual([["a3", 1]]);
});

test("what an endpoint has in flight when it falls ill counts among the ill, until it is well again", () => {
  const slots = slotsOf({ organization: 40, unwellPart: 1 / 20 });
  for (const id of ["x", "y", "z"]) slots.begin("a1", id);
  for (const outcome of [false, false]) attempted(slots, "a2", outcome);
  slots.end("a1", "x", false);
  expect(roomsOf(slots, "a2")).toEqual([]);
  slots.end("a1", "y", true);
  slots.end("a1", "z", true);
  expect(roomsOf(slots, "a2")).toEqual([["a2", 1]]);
});

test("what is expected later is not looked at earlier, and what has no room wakes nobody", () => {
  const slots = slotsOf(single);
  slots.expect("a1", 500);
  expect(slots.take(499)).toEqual([]);
  expect(slots.nextAt()).toBe(500);
  slots.begin("b1", "x");
  expect(slots.nextAt()).toBe(Number.POSITIVE_INFINITY);
  slots.end("b1", "x", true);
  expect(slots.take(500)).toEqual([{ webhookId: "a1", room: 1 }]);
});

test("an endpoint that has its share in flight is looked at again when something of it ends", () => {
  const slots = slotsOf({ starting: 1 });
  slots.begin("a1", "x");
  expect(roomsOf(slots, "a1")).toEqual([]);
  expect(slots.nextAt()).toBe(Number.POSITIVE_INFINITY);
  slots.end("a1", "x", false);
  expect(slots.nextAt()).toBe(0);
  expect(roomsOf(slots)).toEqual([["a1", 1]]);
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

test("what has just come for an endpoint that is unwell waits for its turn", () => {
  const slots = slotsOf();
  attempted(slots, "a1", false);
  expect(slots.tryBegin("a1", "x", 0)).toBe(false);
});

test.each([
  ["its organization", { organization: 1, starting: 1 }, ["a1", "a2", "a3"]],
  ["all", single, ["a1", "b1", "c1"]],
])(
  "what has just come does not pass an endpoint that waits for room of %s",
  (_, limits, [first = "", second = "", third = ""]) => {
    const slots = slotsOf(limits);
    slots.begin(first, "x");
    slots.expect(second, 0);
    expect(slots.take(0)).toEqual([]);
    slots.end(first, "x", true);
    expect(slots.tryBegin(third, "y", 0)).toBe(false);
    expect(slots.take(0)).toEqual([{ webhookId: second, room: 1 }]);
  },
);
