import type { LogItem, MetricItem, Origin } from "../export-item.ts";
import type { Configuration } from "../metrics-export.ts";
import { configuredBase, headersField, ownHeaders } from "./configured-values.ts";
import type { Destination, ExportRequest } from "./destination.ts";
import { gzipped, jsonOf, piecesOf } from "./request-encoding.ts";
import { type Verdict, verdictOfStatus } from "./verdict.ts";

const limits = { itemsMax: 2_000, bytesMax: 4 << 20 };
/** Placeholder as long as an encoded data point can be, with its share of the metric and the resource. */
const pointPlaceholder = "x".repeat(256);

/** Severity numbers of the OpenTelemetry log data model. */
const severities = { debug: 5, info: 9, warn: 13, error: 17 } as const;

/** OTLP as JSON over HTTP (opentelemetry-proto 1.x): int64 as text, enumerations as numbers. */
export const otlp: Destination = {
  type: "otlp",
  fields: {
    endpoint: { kind: "url", required: true, isTarget: true },
    headers: headersField,
    protocol: { kind: "choice", values: ["http", "grpc"], default: "grpc" },
    insecure: { kind: "flag", default: false, isTarget: true },
    timeout_seconds: { kind: "integer", min: 1, max: 60, default: 30 },
  },
  check({ endpoint, insecure }) {
    if (typeof endpoint !== "string") return [];
    const signal = /\/v1\/(metrics|logs|traces)\/?$/.exec(endpoint);
    if (signal !== null) {
      const base = endpoint.slice(0, signal.index);
      return [{ key: "endpoint", code: "invalid_url", detail: `must be without ${signal[0]}: ${base}` }];
    }
    if (/^http:/i.test(endpoint) && insecure !== true)
      return [{ key: "insecure", code: "required", detail: "must be true for an http:// endpoint" }];
    return [];
  },
  warnings: ({ protocol }) =>
    protocol === "grpc" ? ["protocol_http_used: OTLP is pushed as JSON over HTTP also if protocol is grpc"] : [],
  probe: async (configuration, _context) => [
    { ...(await requestOf<never>("metrics", [], '{"resourceMetrics":[]}', configuration)), about: "metrics" },
    { ...(await requestOf<never>("logs", [], '{"resourceLogs":[]}', configuration)), about: "logs" },
  ],
  metrics: {
    encode: async (items, configuration) =>
      Promise.all(
        (await piecesOf(items, () => pointPlaceholder, limits)).map((piece) =>
          requestOf("metrics", piece.items, metricsJson(piece.items), configuration),
        ),
      ),
  },
  logs: {
    encode: async (items, configuration, { nowMs }) =>
      Promise.all(
        (await piecesOf(items, (item) => recordJson(item, nowMs), limits)).map((piece) =>
          requestOf("logs", piece.items, logsJson(piece.items, piece.texts), configuration),
        ),
      ),
  },
  interpret({ status, retryAfterMs, body }, { items }): Verdict {
    // Loki responds with 422 to a request without records, after it accepted the credential.
    if (items.length === 0 && status === 422) return { kind: "accepted" };
    if (status !== 200) return verdictOfStatus(status, retryAfterMs);
    const partial = (jsonOf(body) as { partialSuccess?: Record<string, unknown> } | undefined)?.partialSuccess;
    const reported = Number(partial?.["rejectedDataPoints"] ?? partial?.["rejectedLogRecords"] ?? 0);
    const refused = Number.isFinite(reported) ? Math.min(Math.max(0, Math.trunc(reported)), items.length) : 0;
    if (refused === 0) return { kind: "accepted" };
    // The OTLP specification forbids a retry of items that `partialSuccess` reports.
    return { kind: "partly", refused, again: [], detail: `the destination refused ${refused} items` };
  },
};

async function requestOf<I>(
  signal: "metrics" | "logs",
  items: readonly I[],
  json: string,
  configuration: Configuration,
): Promise<ExportRequest<I>> {
  return {
    method: "POST",
    url: `${configuredBase(configuration)}/v1/${signal}`,
    headers: {
      ...ownHeaders(configuration),
      "content-type": "application/json",
      "content-encoding": "gzip",
    },
    body: await gzipped(json),
    items,
  };
}

const text = (key: string, value: string) => ({ key, value: { stringValue: value } });

function resourceOf({ serviceId, serviceName, dbType, nodeId }: Origin) {
  return {
    attributes: [
      text("service.name", serviceName),
      text("platform.service_id", serviceId),
      text("platform.node_id", nodeId),
      text("platform.db_type", dbType),
      text("platform.service_name", serviceName),
    ],
  };
}

const scope = { name: "holdfast" };
/** Nanoseconds as text, because they exceed the precision of a number. */
const nanos = (ms: number) => `${ms}000000`;

function metricsJson(items: readonly MetricItem[]): string {
  const resourceMetrics = [...Map.groupBy(items, ({ origin }) => origin)].map(([origin, own]) => ({
    resource: resourceOf(origin),
    scopeMetrics: [
      {
        scope,
        metrics: [...Map.groupBy(own, ({ metric }) => metric)].map(([metric, points]) => ({
          name: `platform.${metric}`,
          gauge: { dataPoints: points.map(({ timeMs, value }) => ({ timeUnixNano: nanos(timeMs), asDouble: value })) },
        })),
      },
    ],
  }));
  return JSON.stringify({ resourceMetrics });
}

function recordJson({ timeMs, level, message, component, role }: LogItem, nowMs: number): string {
  return JSON.stringify({
    timeUnixNano: nanos(timeMs),
    observedTimeUnixNano: nanos(nowMs),
    severityNumber: severities[level],
    severityText: level.toUpperCase(),
    body: { stringValue: message },
    attributes: [text("component", component), text("role", role)],
  });
}

function logsJson(items: readonly LogItem[], records: readonly string[]): string {
  const byOrigin = Map.groupBy(items.entries(), ([, { origin }]) => origin);
  const resources = [...byOrigin].map(([origin, own]) => {
    const list = own.map(([index]) => records[index]).join();
    return `{"resource":${JSON.stringify(resourceOf(origin))},"scopeLogs":[{"scope":${JSON.stringify(scope)},"logRecords":[${list}]}]}`;
  });
  return `{"resourceLogs":[${resources.join()}]}`;
}
