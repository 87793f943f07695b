import { compress } from "snappy";
import type { MetricItem } from "../export-item.ts";
import type { Configuration } from "../metrics-export.ts";
import {
  checkCredentials,
  configuredText,
  credentialHeaders,
  headersField,
  tenantField,
  tenantHeaders,
} from "./configured-values.ts";
import type { Destination, ExportRequest } from "./destination.ts";
import { tooOldVerdict, verdictOfStatus } from "./verdict.ts";
import { writeRequest } from "./write-request.ts";

const paths = "/api/v1/write (Prometheus, VictoriaMetrics), /api/v1/push (Mimir, Cortex), /api/v1/receive (Thanos)";
const samplesMax = 5_000;

/**
 * Error texts of receivers about samples that are too old or duplicate: a retry would be refused too. Mimir has hyphens
 * (`err-mimir-sample-out-of-order`). `out of order labels` is about something else.
 */
const tooLate =
  /out[- ]of[- ]order(?! labels)|out[- ]of[- ]bounds|too[- ]old|duplicate[- ](sample|timestamp)|older than/i;
/** Thanos before 0.31 responds with this word, alone or after the name of an endpoint. */
const conflict = /(^|: )conflict\s*($|;)/i;

/** Prometheus remote write 1.0: Prometheus, VictoriaMetrics, Mimir, Thanos and compatible services. */
export const prometheusRemoteWrite: Destination = {
  type: "prometheus_remote_write",
  fields: {
    url: {
      kind: "url",
      required: true,
      isTarget: true,
      mayHaveQuery: true,
      // Receivers have their own paths; a request to the root would reach something else.
      needsPath: true,
      requirement: `have the path of the receiver: ${paths}`,
    },
    username: { kind: "text", isTarget: "account" },
    password: { kind: "secret" },
    bearer_token: { kind: "secret" },
    tenant_id: tenantField,
    headers: headersField,
    tls_skip_verify: { kind: "flag", default: false, isTarget: true },
  },
  check: (configuration) => checkCredentials(configuration, "bearer_token"),
  probe: async (configuration) => [await requestOf<never>([], configuration)],
  metrics: {
    async encode(items, configuration) {
      const requests: ExportRequest<MetricItem>[] = [];
      for (let at = 0; at < items.length; at += samplesMax)
        requests.push(await requestOf(items.slice(at, at + samplesMax), configuration));
      return requests;
    },
  },
  interpret({ status, retryAfterMs, body }) {
    const text = body.toString("utf8", 0, 4_096);
    // Thanos responds with 409 to samples that it has, or that are older than its newest; others with 400.
    const isTooLate = (status === 400 || status === 409) && tooLate.test(text);
    if (isTooLate || (status === 409 && conflict.test(text))) return tooOldVerdict(status);
    return verdictOfStatus(status, retryAfterMs);
  },
};

async function requestOf<I extends MetricItem>(
  items: readonly I[],
  configuration: Configuration,
): Promise<ExportRequest<I>> {
  return {
    method: "POST",
    url: configuredText(configuration, "url"),
    headers: {
      "content-type": "application/x-protobuf",
      "content-encoding": "snappy",
      "x-prometheus-remote-write-version": "0.1.0",
      ...tenantHeaders(configuration),
      ...credentialHeaders(configuration),
    },
    // Remote write requires the Snappy block format; an empty block is not an empty body.
    body: await compress(writeRequest(items)),
    items,
  };
}
