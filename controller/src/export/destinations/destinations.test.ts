import { describe, expect, test } from "vitest";
import type { Answer, ExportRequest } from "./destination.ts";
import { destinationConformance } from "./destination-conformance.ts";
import { destinations } from "./destinations.ts";

for (const destination of Object.values(destinations)) destinationConformance(destination);

const request = (count: number): ExportRequest<unknown> => ({
  method: "POST",
  url: "http://x/",
  headers: {},
  items: Array.from({ length: count }),
});
const answer = (status: number, body: unknown): Answer => ({
  status,
  retryAfterMs: undefined,
  body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
});

describe("answers about single items", () => {
  test("of a bulk: stored before is taken, full queues are asked again, the rest is refused", () => {
    const items = [201, 409, 429, 400, 503].map((status) => ({ create: { status } }));
    const told = destinations.search_cluster.judge(answer(200, { errors: true, items }), request(5));
    expect(told).toMatchObject({ kind: "partly", refused: 1, again: [2, 4] });
  });

  test.each([401, 403, 404])(
    "of a bulk: %i of an item is for whoever set it up to mend, and drops nothing",
    (status) => {
      const items = [201, status, 400].map((each) => ({ create: { status: each } }));
      const told = destinations.search_cluster.judge(answer(200, { errors: true, items }), request(3));
      expect(told).toMatchObject({ kind: "stop", why: expect.stringContaining(`HTTP ${status}`) });
    },
  );

  test("of OTLP: what it counts as rejected is not sent again", () => {
    const told = destinations.otlp.judge(answer(200, { partialSuccess: { rejectedDataPoints: "3" } }), request(5));
    expect(told).toMatchObject({ kind: "partly", refused: 3, again: [] });
    expect(destinations.otlp.judge(answer(200, { partialSuccess: {} }), request(5))).toEqual({ kind: "accepted" });
  });

  test("of CloudWatch Logs: those whose times it does not take", () => {
    const events = { ...request(10), needs: async () => [] };
    const rejectedLogEventsInfo = {
      tooOldLogEventEndIndex: 2,
      expiredLogEventEndIndex: 3,
      tooNewLogEventStartIndex: 9,
    };
    expect(destinations.cloud_monitoring.judge(answer(200, { rejectedLogEventsInfo }), events)).toMatchObject({
      kind: "partly",
      refused: 4,
    });
  });

  test.each([
    ["ThrottlingException", "later"],
    ["ResourceNotFoundException", "prepare"],
    ["UnrecognizedClientException", "stop"],
    ["InvalidParameterException", "divide"],
  ])("of CloudWatch Logs: %s means %s, all with status 400", (name, kind) => {
    expect(destinations.cloud_monitoring.judge(answer(400, { __type: name }), request(1))).toMatchObject({ kind });
  });

  test.each([
    ["out of order sample", "too_old"],
    ["label name is invalid", "refused"],
  ])("of remote write: %s is %s", (body, reason) => {
    const told = destinations.prometheus_remote_write.judge(answer(400, body), request(2));
    expect(told).toMatchObject({ kind: "divide", reason });
  });
});
