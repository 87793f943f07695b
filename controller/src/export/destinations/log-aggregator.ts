import type { LogItem } from "../export-item.ts";
import type { Configuration } from "../metrics-export.ts";
import {
  checkCredentials,
  configuredBase,
  credentialHeaders,
  headersField,
  tenantField,
  tenantHeaders,
} from "./configured-values.ts";
import type { Destination, ExportRequest } from "./destination.ts";
import { piecesOf } from "./request-encoding.ts";
import { tooOldVerdict, verdictOfStatus } from "./verdict.ts";

const limits = { itemsMax: 2_000, bytesMax: 1_000_000 };
/** Labels that identify the streams; users' labels must not replace them. */
const ownLabels = /^(service_id|db_type|level|__.*)$/;
const tooLate = /out of order|too far behind|timestamp too old|too old/i;

/** Grafana Loki's push API, with one stream per service and level. */
export const logAggregator: Destination = {
  type: "log_aggregator",
  fields: {
    endpoint: { kind: "url", required: true, isTarget: true },
    username: { kind: "text", isTarget: "account" },
    password: { kind: "secret" },
    bearer_token: { kind: "secret" },
    tenant_id: tenantField,
    headers: headersField,
    labels: { kind: "texts", max: 15, namePattern: /^[a-zA-Z_][a-zA-Z0-9_]{0,127}$/, refusedNames: ownLabels },
  },
  check: (configuration) => checkCredentials(configuration, "bearer_token"),
  probe: async (configuration) => [requestOf<never>([], '{"streams":[]}', configuration)],
  logs: {
    encode: async (items, configuration) =>
      (await piecesOf(items, valueJson, limits)).map(({ items: own, texts }) =>
        requestOf(own, streamsJson(own, texts, configuration), configuration),
      ),
  },
  interpret({ status, retryAfterMs, body }, { items }) {
    // Some versions of Loki respond to an empty push with 422, after they accepted the credential.
    if (items.length === 0 && status === 422) return { kind: "accepted" };
    if (status === 400 && tooLate.test(body.toString("utf8", 0, 4_096))) return tooOldVerdict(status);
    return verdictOfStatus(status, retryAfterMs);
  },
};

function requestOf<I>(items: readonly I[], body: string, configuration: Configuration): ExportRequest<I> {
  const endpoint = configuredBase(configuration);
  return {
    method: "POST",
    url: endpoint.endsWith("/loki/api/v1/push") ? endpoint : `${endpoint}/loki/api/v1/push`,
    headers: {
      "content-type": "application/json",
      ...tenantHeaders(configuration),
      ...credentialHeaders(configuration),
    },
    body,
    items,
  };
}

function valueJson({ timeMs, message, origin, component, role }: LogItem): string {
  return JSON.stringify([
    `${timeMs}000000`,
    JSON.stringify({ message, node_id: origin.nodeId, service_name: origin.serviceName, component, role }),
  ]);
}

function streamsJson(items: readonly LogItem[], values: readonly string[], { labels }: Configuration): string {
  const entries = items.map((item, index) => ({ item, value: values[index] ?? "" }));
  const groups = Map.groupBy(entries, ({ item: { origin, level } }) => `${origin.serviceId} ${origin.dbType} ${level}`);
  const streams = [...groups.values()].map((own) => {
    const [first] = own;
    if (first === undefined) return "";
    const { origin, level } = first.item;
    const stream = {
      ...(labels as Readonly<Record<string, string>> | undefined),
      service_id: origin.serviceId,
      db_type: origin.dbType,
      level,
    };
    // The nodes of a service share a stream, and strict receivers refuse entries that are out of order.
    const sorted = own.toSorted((a, b) => a.item.timeMs - b.item.timeMs).map(({ value }) => value);
    return `{"stream":${JSON.stringify(stream)},"values":[${sorted.join()}]}`;
  });
  return `{"streams":[${streams.join()}]}`;
}
