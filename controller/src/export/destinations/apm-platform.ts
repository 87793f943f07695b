import { labelsOf, type LogItem, type MetricItem, type Origin } from "../export-item.ts";
import type { Configuration } from "../metrics-export.ts";
import { configuredText } from "./configured-values.ts";
import type { Destination, EncodeContext, ExportRequest } from "./destination.ts";
import { gzipped, piecesOf } from "./request-encoding.ts";
import { verdictOfStatus } from "./verdict.ts";

const sites = [
  "datadoghq.com",
  "us3.datadoghq.com",
  "us5.datadoghq.com",
  "datadoghq.eu",
  "ap1.datadoghq.com",
  "ap2.datadoghq.com",
  "ddog-gov.com",
] as const;

const hourMs = 3_600_000;
const metricLimits = { itemsMax: 2_000, bytesMax: 4_000_000 };
const logLimits = { itemsMax: 1_000, bytesMax: 4_500_000 };
/** Metric type of the series API: 1 count, 2 rate, 3 gauge. */
const gauge = 3;

/** Datadog: series API v2 and logs intake v2. */
export const apmPlatform: Destination = {
  type: "apm_platform",
  fields: {
    api_key: { kind: "secret", required: true },
    site: { kind: "choice", values: sites, default: "datadoghq.com", isTarget: true },
    tags: { kind: "texts", namePattern: /^[A-Za-z][A-Za-z0-9_./-]{0,127}$/ },
  },
  vendorBase: (_, { apm: base }) => (base === "" ? undefined : base),
  probe: async (configuration, context) => [
    {
      method: "GET",
      url: `${apiOf(configuration, context)}/api/v1/validate`,
      headers: { "dd-api-key": configuredText(configuration, "api_key") },
      items: [],
    },
  ],
  metrics: {
    oldestMs: hourMs,
    encode: async (items, configuration, context) =>
      Promise.all(
        (await piecesOf(items, (item) => seriesJson(item, configuration), metricLimits)).map(
          ({ items: own, texts }) => {
            const url = `${apiOf(configuration, context)}/api/v2/series`;
            return requestOf(url, own, `{"series":[${texts.join()}]}`, configuration);
          },
        ),
      ),
  },
  logs: {
    oldestMs: 18 * hourMs,
    encode: async (items, configuration, context) =>
      Promise.all(
        (await piecesOf(items, (item) => entryJson(item, configuration), logLimits)).map(({ items: own, texts }) => {
          const url = `${intakeOf(configuration, context)}/api/v2/logs`;
          return requestOf(url, own, `[${texts.join()}]`, configuration);
        }),
      ),
  },
  interpret: ({ status, retryAfterMs }) => verdictOfStatus(status, retryAfterMs),
};

function apiOf(configuration: Configuration, { vendors }: EncodeContext): string {
  return vendors.apm === "" ? `https://api.${configuredText(configuration, "site")}` : vendors.apm;
}

function intakeOf(configuration: Configuration, { vendors }: EncodeContext): string {
  return vendors.apm === "" ? `https://http-intake.logs.${configuredText(configuration, "site")}` : vendors.apm;
}

async function requestOf<I>(
  url: string,
  items: readonly I[],
  json: string,
  configuration: Configuration,
): Promise<ExportRequest<I>> {
  return {
    method: "POST",
    url,
    headers: {
      "content-type": "application/json",
      "content-encoding": "gzip",
      "dd-api-key": configuredText(configuration, "api_key"),
    },
    body: await gzipped(json),
    items,
  };
}

function tagsOf(origin: Origin, { tags }: Configuration): string[] {
  return [...labelsOf(origin), ...Object.entries(tags ?? {})].map(([name, value]) => `${name}:${String(value)}`);
}

function seriesJson({ origin, metric, value, timeMs }: MetricItem, configuration: Configuration): string {
  return JSON.stringify({
    metric: `platform.${metric}`,
    type: gauge,
    points: [{ timestamp: Math.floor(timeMs / 1_000), value }],
    resources: [{ name: origin.nodeId, type: "host" }],
    tags: tagsOf(origin, configuration),
  });
}

function entryJson({ origin, level, message, component, role, timeMs }: LogItem, configuration: Configuration): string {
  return JSON.stringify({
    ddsource: origin.dbType,
    ddtags: tagsOf(origin, configuration).join(),
    hostname: origin.nodeId,
    service: origin.serviceName,
    status: level,
    timestamp: timeMs,
    message,
    component,
    role,
  });
}
