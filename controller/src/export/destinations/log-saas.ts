import type { LogItem } from "../export-item.ts";
import type { Configuration } from "../metrics-export.ts";
import { configuredText } from "./configured-values.ts";
import type { Destination, EncodeContext, ExportRequest } from "./destination.ts";
import { gzipped, piecesOf } from "./request-encoding.ts";
import { verdictOfStatus } from "./verdict.ts";

const limits = { itemsMax: 1_000, bytesMax: 5_000_000 };

/** Log services that accept a JSON array of objects with a bearer token. */
export const logSaas: Destination = {
  type: "log_saas",
  fields: {
    source_token: { kind: "secret", required: true },
    endpoint: { kind: "url", isTarget: true },
  },
  vendorBase: ({ endpoint }, { logSaas: base }) => (endpoint === undefined ? base : undefined),
  probe: async (configuration, context) => [await requestOf<never>([], "[]", configuration, context)],
  logs: {
    encode: async (items, configuration, context) =>
      Promise.all(
        (await piecesOf(items, entryJson, limits)).map(({ items: own, texts }) =>
          requestOf(own, `[${texts.join()}]`, configuration, context),
        ),
      ),
  },
  interpret: ({ status, retryAfterMs }) => verdictOfStatus(status, retryAfterMs),
};

async function requestOf<I>(
  items: readonly I[],
  json: string,
  configuration: Configuration,
  { vendors }: EncodeContext,
): Promise<ExportRequest<I>> {
  return {
    method: "POST",
    url: configuration["endpoint"] === undefined ? vendors.logSaas : configuredText(configuration, "endpoint"),
    headers: {
      "content-type": "application/json",
      "content-encoding": "gzip",
      authorization: `Bearer ${configuredText(configuration, "source_token")}`,
    },
    body: await gzipped(json),
    items,
  };
}

function entryJson({ origin, level, message, component, role, timeMs }: LogItem): string {
  return JSON.stringify({
    dt: new Date(timeMs).toISOString(),
    level,
    message,
    service_id: origin.serviceId,
    service_name: origin.serviceName,
    db_type: origin.dbType,
    node_id: origin.nodeId,
    metadata: { component, role },
  });
}
