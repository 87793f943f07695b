import { createHash } from "node:crypto";
import type { LogItem, MetricItem, Origin } from "../export-item.ts";
import type { Configuration } from "../metrics-export.ts";
import { checkCredentials, configuredBase, configuredText, credentialHeaders } from "./configured-values.ts";
import type { Destination, Encoder, ExportRequest } from "./destination.ts";
import { jsonOf, piecesOf } from "./request-encoding.ts";
import { isTransient, type Verdict, verdictOfStatus, messageOf } from "./verdict.ts";

const limits = { itemsMax: 2_000, bytesMax: 5_000_000 };

/**
 * Elasticsearch and OpenSearch by their bulk API. A document's id is a hash of its content, so a repeated document is
 * stored once.
 */
export const searchCluster: Destination = {
  type: "search_cluster",
  fields: {
    endpoint: { kind: "url", required: true, isTarget: true },
    api_key: { kind: "secret" },
    username: { kind: "text", isTarget: "account" },
    password: { kind: "secret" },
    index_prefix: {
      kind: "text",
      default: "platform",
      max: 100,
      pattern: /^[a-z0-9][a-z0-9_.-]*$/,
      requirement: "begin with a letter or digit and have lower-case letters, digits, _, . and - only",
    },
    tls_skip_verify: { kind: "flag", default: false, isTarget: true },
  },
  check: (configuration) => checkCredentials(configuration, "api_key"),
  probe: async (configuration) => [
    { method: "GET", url: `${configuredBase(configuration)}/`, headers: headersOf(configuration), items: [] },
  ],
  metrics: encoderOf<MetricItem>("metrics", metricDocument),
  logs: encoderOf<LogItem>("logs", logDocument),
  interpret({ status, retryAfterMs, body }, { items, method }): Verdict {
    if (status !== 200 || method === "GET") return verdictOfStatus(status, retryAfterMs);
    const response = jsonOf(body) as { errors?: unknown; items?: unknown } | undefined;
    if (response?.errors === false) return { kind: "accepted" };
    if (!Array.isArray(response?.items) || response.items.length !== items.length)
      return {
        kind: "later",
        afterMs: undefined,
        detail: "the destination's response does not say which items it accepted",
      };
    const statuses = response.items.map((item: unknown) =>
      Number((item as { create?: { status?: unknown } })?.create?.status),
    );
    // Another credential or index would be accepted, so nothing is dropped.
    const blocked = statuses.find((each) => verdictOfStatus(each).kind === "stop");
    if (blocked !== undefined) return { kind: "stop", detail: messageOf(blocked) };
    const again = [...statuses.keys()].filter((index) => isTransient(statuses[index] ?? 0));
    // 409: the document exists from an earlier attempt.
    const refused = statuses.filter((each) => each >= 400 && each !== 409 && !isTransient(each));
    const detail =
      again.length > 0 ? messageOf(429) : `${messageOf(refused[0] ?? 400)}, ${refused.length} of ${items.length} items`;
    if (again.length + refused.length === 0) return { kind: "accepted" };
    return { kind: "partly", refused: refused.length, again, detail };
  },
};

function headersOf(configuration: Configuration): Record<string, string> {
  if (configuration["api_key"] === undefined) return credentialHeaders(configuration);
  return { authorization: `ApiKey ${configuredText(configuration, "api_key")}` };
}

function encoderOf<I>(dataType: "metrics" | "logs", documentOf: (item: I) => string): Encoder<I> {
  return {
    encode: async (items, configuration) => {
      const index = `${configuredText(configuration, "index_prefix")}-platform-${dataType}`;
      const lines = (item: I) => {
        const document = documentOf(item);
        return `{"create":{"_index":"${index}","_id":"${hashOf(document)}"}}\n${document}\n`;
      };
      return (await piecesOf(items, lines, limits)).map(
        (piece): ExportRequest<I> => ({
          method: "POST",
          url: `${configuredBase(configuration)}/_bulk`,
          headers: { "content-type": "application/x-ndjson", ...headersOf(configuration) },
          body: piece.texts.join(""),
          items: piece.items,
        }),
      );
    },
  };
}

const hashOf = (document: string) => createHash("sha256").update(document).digest("base64url").slice(0, 32);

const tagsOf = ({ serviceId, serviceName, dbType, nodeId }: Origin) => ({
  service_id: serviceId,
  db_type: dbType,
  node_id: nodeId,
  service_name: serviceName,
});

function metricDocument({ origin, metric, value, timeMs }: MetricItem): string {
  return JSON.stringify({
    "@timestamp": new Date(timeMs).toISOString(),
    metric: `platform_${metric}`,
    value,
    tags: tagsOf(origin),
  });
}

function logDocument({ origin, level, message, component, role, timeMs }: LogItem): string {
  return JSON.stringify({
    "@timestamp": new Date(timeMs).toISOString(),
    level,
    message,
    tags: tagsOf(origin),
    metadata: { component, role },
  });
}
