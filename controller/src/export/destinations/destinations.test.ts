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

describe("responses about single items", () => {
  test("a bulk response: stored documents are accepted, full queues retried, others refused", () => {
    const items = [201, 409, 429, 400, 503].map((status) => ({ create: { status } }));
    const verdict = destinations.search_cluster.interpret(answer(200, { errors: true, items }), request(5));
    expect(verdict).toMatchObject({ kind: "partly", refused: 1, again: [2, 4] });
  });

  test.each([401, 403, 404])("a bulk response: status %i of an item stops the export and drops nothing", (status) => {
    const items = [201, status, 400].map((each) => ({ create: { status: each } }));
    const verdict = destinations.search_cluster.interpret(answer(200, { errors: true, items }), request(3));
    expect(verdict).toMatchObject({ kind: "stop", detail: expect.stringContaining(`HTTP ${status}`) });
  });

  test("an OTLP response: rejected items are not sent again", () => {
    const verdict = destinations.otlp.interpret(
      answer(200, { partialSuccess: { rejectedDataPoints: "3" } }),
      request(5),
    );
    expect(verdict).toMatchObject({ kind: "partly", refused: 3, again: [] });
    expect(destinations.otlp.interpret(answer(200, { partialSuccess: {} }), request(5))).toEqual({ kind: "accepted" });
  });

  test("a CloudWatch Logs response: entries that are too old or too new are refused", () => {
    const events = { ...request(10), needs: async () => [] };
    const rejectedLogEventsInfo = {
      tooOldLogEventEndIndex: 2,
      expiredLogEventEndIndex: 3,
      tooNewLogEventStartIndex: 9,
    };
    expect(destinations.cloud_monitoring.interpret(answer(200, { rejectedLogEventsInfo }), events)).toMatchObject({
      kind: "partly",
      refused: 4,
    });
  });

  test.each([
    ["ThrottlingException", "later"],
    ["ResourceNotFoundException", "prepare"],
    ["UnrecognizedClientException", "stop"],
    ["InvalidParameterException", "divide"],
  ])("a CloudWatch Logs response with status 400: %s means %s", (name, kind) => {
    expect(destinations.cloud_monitoring.interpret(answer(400, { __type: name }), request(1))).toMatchObject({ kind });
  });

  test.each([
    ["out of order sample", "too_old"],
    ["label name is invalid", "refused"],
  ])("a remote write response: %s is %s", (body, reason) => {
    const verdict = destinations.prometheus_remote_write.interpret(answer(400, body), request(2));
    expect(verdict).toMatchObject({ kind: "divide", reason });
  });
});
