import { expect, test } from "vitest";
import { envelopeOf } from "./send-signed.ts";

test("the body does not depend on the order of the data's members", () => {
  const event = { id: "0198f2a4-9b3c-7e55-b1d2-6a0c4f8e2d31", type: "service.running", occurredAt: 0 };
  const one = envelopeOf({ ...event, data: { status: "Running", deep: [{ b: 1, a: null }], a: "ä" } });
  const other = envelopeOf({ ...event, data: { a: "ä", deep: [{ a: null, b: 1 }], status: "Running" } });
  expect(one).toBe(other);
  expect(one).toBe(
    '{"id":"0198f2a4-9b3c-7e55-b1d2-6a0c4f8e2d31","event_type":"service.running","timestamp":"1970-01-01T00:00:00.000Z",' +
      '"data":{"a":"ä","deep":[{"a":null,"b":1}],"status":"Running"}}',
  );
});
