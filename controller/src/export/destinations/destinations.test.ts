import { describe, expect, test } from "vitest";
import { deliverItems } from "../deliver-items.ts";
import type { DestinationResponse, ExportRequest } from "./destination.ts";
import { destinationConformance } from "./destination-conformance.ts";
import { destinations } from "./destinations.ts";
import { verdictOfStatus } from "./verdict.ts";

for (const destination of Object.values(destinations)) destinationConformance(destination);

const request = (count: number): ExportRequest<unknown> => ({
  method: "POST",
  url: "http://x/",
  headers: {},
  items: Array.from({ length: count }),
});
const responseOf = (status: number, body: unknown): DestinationResponse => ({
  status,
  retryAfterMs: undefined,
  body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
});

describe("responses about single items", () => {
  test("a bulk response: stored documents are accepted, full queues retried, others refused", () => {
    const items = [201, 409, 429, 400, 503].map((status) => ({ create: { status } }));
    const verdict = destinations.search_cluster.interpret(responseOf(200, { errors: true, items }), request(5));
    expect(verdict).toMatchObject({ kind: "partly", refused: 1, again: [2, 4] });
  });

  test.each([401, 403, 404])("a bulk response: status %i of an item stops the export and drops nothing", (status) => {
    const items = [201, status, 400].map((each) => ({ create: { status: each } }));
    const verdict = destinations.search_cluster.interpret(responseOf(200, { errors: true, items }), request(3));
    expect(verdict).toMatchObject({ kind: "stop", detail: expect.stringContaining(`HTTP ${status}`) });
  });

  test("an OTLP response: rejected items are not sent again", () => {
    const verdict = destinations.otlp.interpret(
      responseOf(200, { partialSuccess: { rejectedDataPoints: "3" } }),
      request(5),
    );
    expect(verdict).toMatchObject({ kind: "partly", refused: 3, again: [] });
    expect(destinations.otlp.interpret(responseOf(200, { partialSuccess: {} }), request(5))).toEqual({
      kind: "accepted",
    });
  });

  test("a CloudWatch Logs response: entries that are too old or too new are refused", () => {
    const events = { ...request(10), needs: async () => [] };
    const rejectedLogEventsInfo = {
      tooOldLogEventEndIndex: 2,
      expiredLogEventEndIndex: 3,
      tooNewLogEventStartIndex: 9,
    };
    expect(destinations.cloud_monitoring.interpret(responseOf(200, { rejectedLogEventsInfo }), events)).toMatchObject({
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
    expect(destinations.cloud_monitoring.interpret(responseOf(400, { __type: name }), request(1))).toMatchObject({
      kind,
    });
  });

  test.each([
    [400, "out of order sample", "too_old"],
    [400, "label name is invalid", "refused"],
    [
      400,
      "the sample has been rejected because its timestamp is too old (err-mimir-sample-timestamp-too-old)",
      "too_old",
    ],
    [400, "duplicate sample for timestamp 1764246000000", "too_old"],
    [409, "store locally for endpoint a:10901: conflict", "too_old"],
    [
      409,
      "2 errors: store locally for endpoint a:10901: conflict; forwarding request to endpoint b:10901: 1",
      "too_old",
    ],
    [409, "conflict\n", "too_old"],
    [409, "store locally for endpoint a:10901: add 1 samples: out of order sample\n", "too_old"],
    [409, "store locally for endpoint a:10901: add 114 series: out of order labels\n", "refused"],
    [409, "tenant conflict, wrong cluster", "refused"],
    [409, "", "refused"],
    [422, "err-mimir-label-invalid", "refused"],
  ])("a remote write response: %i %s is %s", (status, body, reason) => {
    const verdict = destinations.prometheus_remote_write.interpret(responseOf(status, body), request(2));
    expect(verdict).toMatchObject({ kind: "divide", reason });
  });
});

test.each([
  [400, "entry for stream '{}' has timestamp too old: 2026-01-01T00:00:00Z", "too_old"],
  [400, "entry out of order", "too_old"],
  [400, "could not parse labels", "refused"],
  [409, "tenant conflict", "refused"],
])("a response of Loki: %i %s is %s", (status, body, reason) => {
  const verdict = destinations.log_aggregator.interpret(responseOf(status, body), request(2));
  expect(verdict).toMatchObject({ kind: "divide", reason });
});

describe("status", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  test.each([
    [200, "accepted"], [204, "accepted"], [302, "stop"], [400, "divide"], [401, "stop"], [402, "stop"], [403, "stop"],
    [404, "stop"], [405, "stop"], [407, "stop"], [408, "later"], [409, "divide"], [410, "stop"], [413, "smaller"],
    [418, "stop"], [422, "divide"], [425, "later"], [429, "later"], [500, "later"], [501, "stop"], [503, "later"],
    [511, "stop"], [599, "later"], [999, "stop"],
  ] as const)("%i means: %s", (status, kind) => {
    expect(verdictOfStatus(status)).toMatchObject({ kind });
  });
});

/** Every sample of three moments; a receiver that has all of them refuses each request. */
test("a batch that the receiver has takes a request for each division of its moments", async () => {
  const origin = { serviceId: "s", serviceName: "s", dbType: "postgresql", nodeId: "n" };
  const items = Array.from({ length: 120 }, (_, index) => ({
    origin,
    metric: `m${index % 40}`,
    value: index,
    timeMs: Math.floor(index / 40) * 15_000,
  }));
  let requests = 0;
  const delivered = await deliverItems(items, {
    encoder: { encode: async (some) => [{ method: "POST", url: "http://x/", headers: {}, items: some }] },
    configuration: {},
    context: { nowMs: 0, vendors: { apm: "", cloud: "", logSaas: "" } },
    send: async (each) => {
      requests += 1;
      return destinations.prometheus_remote_write.interpret(responseOf(409, "conflict"), each);
    },
    wait: async () => undefined,
  });
  expect(delivered).toMatchObject({ taken: 0, tooOld: 120, refused: 0 });
  expect(requests).toBe(5);
});
