import { AwsV4Signer } from "aws4fetch";
import type { LogItem, MetricItem, Origin } from "../export-item.ts";
import type { Configuration } from "../metrics-export.ts";
import { configuredText } from "./configured-values.ts";
import type { Destination, DestinationResponse, EncodeContext, ExportRequest } from "./destination.ts";
import { jsonOf, piecesOf } from "./request-encoding.ts";
import { messageOf, type Verdict, verdictOfStatus } from "./verdict.ts";

const metricsMax = 1_000;
/** PutLogEvents takes 1 MiB; each event counts 26 bytes more than its text. */
const logLimits = { itemsMax: 10_000, bytesMax: 1_000_000 };
const dayMs = 86_400_000;

/** Amazon CloudWatch and compatible services: PutMetricData, and PutLogEvents into one stream per day. */
export const cloudMonitoring: Destination = {
  type: "cloud_monitoring",
  fields: {
    region: {
      kind: "text",
      required: true,
      isTarget: true,
      pattern: /^[a-z]{2}(-[a-z]{2,16}){1,3}-\d{1,2}$/,
      requirement: "be the name of a region, such as eu-west-1",
    },
    access_key_id: {
      kind: "text",
      required: true,
      isTarget: "account",
      pattern: /^\w{16,128}$/,
      requirement: "be an access key id",
    },
    secret_access_key: { kind: "secret", required: true },
    namespace: {
      kind: "text",
      default: "Platform",
      max: 255,
      pattern: /^(?!AWS\/)[A-Za-z0-9._\-/#][A-Za-z0-9._\-/#:]*$/,
      requirement: "have letters, digits and ._-/# only, and not begin with AWS/",
    },
    log_group_name: {
      kind: "text",
      default: "/platform/logs",
      max: 512,
      pattern: /^[.\-_/#A-Za-z0-9]+$/,
      requirement: "have letters, digits and .-_/# only",
    },
  },
  vendorBase: (_, { cloud: base }) => (base === "" ? undefined : base),
  probe: async (configuration, context) => [
    {
      ...(await cloudRequest(
        { service: "monitoring", body: "Action=ListMetrics&Version=2010-08-01" },
        [],
        configuration,
        context,
      )),
      about: "metrics",
    },
    {
      ...(await cloudRequest(
        { service: "logs", action: "DescribeLogGroups", body: JSON.stringify({ limit: 1 }) },
        [],
        configuration,
        context,
      )),
      about: "logs",
    },
  ],
  metrics: {
    oldestMs: 14 * dayMs,
    async encode(items, configuration, context) {
      const requests: ExportRequest<MetricItem>[] = [];
      for (let at = 0; at < items.length; at += metricsMax) {
        const own = items.slice(at, at + metricsMax);
        const body = metricData(own, configuredText(configuration, "namespace"));
        requests.push(await cloudRequest({ service: "monitoring", body }, own, configuration, context));
      }
      return requests;
    },
  },
  logs: {
    oldestMs: 14 * dayMs,
    async encode(items, configuration, context) {
      const sorted = items.toSorted((a, b) => a.timeMs - b.timeMs);
      const days = Map.groupBy(sorted, ({ timeMs }) => streamOf(timeMs));
      const requests: ExportRequest<LogItem>[] = [];
      for (const [stream, ofDay] of days)
        for (const { items: own, texts } of await piecesOf(ofDay, eventJson, logLimits)) {
          const names = JSON.stringify({ logGroupName: configuration["log_group_name"], logStreamName: stream });
          const body = `${names.slice(0, -1)},"logEvents":[${texts.join()}]}`;
          const call = { service: "logs", action: "PutLogEvents", body } as const;
          const request = await cloudRequest(call, own, configuration, context);
          requests.push({ ...request, needs: () => creationRequests(names, configuration, context) });
        }
      return requests;
    },
  },
  interpret(response, { items, needs }) {
    const verdict = cloudVerdict(response);
    if (needs === undefined || verdict.kind !== "accepted") return verdict;
    return verdictOfEvents(jsonOf(response.body), items.length);
  },
};

/** The requests that create the log group and the log stream. */
function creationRequests(names: string, configuration: Configuration, context: EncodeContext) {
  const { logGroupName } = JSON.parse(names) as { readonly logGroupName: string };
  const group = { service: "logs", action: "CreateLogGroup", body: JSON.stringify({ logGroupName }) } as const;
  const stream = { service: "logs", action: "CreateLogStream", body: names } as const;
  return Promise.all([group, stream].map((call) => cloudRequest<never>(call, [], configuration, context)));
}

/**
 * `rejectedLogEventsInfo` of PutLogEvents has indices into the request's events: ends are exclusive, the start is
 * inclusive.
 */
function verdictOfEvents(response: unknown, count: number): Verdict {
  const rejected = (response as { rejectedLogEventsInfo?: Readonly<Record<string, unknown>> } | undefined)
    ?.rejectedLogEventsInfo;
  if (rejected === undefined) return { kind: "accepted" };
  const { tooOldLogEventEndIndex, expiredLogEventEndIndex, tooNewLogEventStartIndex } = rejected;
  const old = Math.max(Number(tooOldLogEventEndIndex ?? 0), Number(expiredLogEventEndIndex ?? 0));
  const refused = old + (count - Number(tooNewLogEventStartIndex ?? count));
  if (!(refused > 0)) return { kind: "accepted" };
  const detail = `the destination refused ${refused} log entries by their times`;
  return { kind: "partly", refused: Math.min(refused, count), again: [], detail };
}

/** Name of the stream of a UTC day, such as `platform-2026-11-21`. */
const streamOf = (timeMs: number) => `platform-${new Date(timeMs).toISOString().slice(0, 10)}`;

function dimensions({ serviceId, serviceName, dbType, nodeId }: Origin): readonly (readonly [string, string])[] {
  return [
    ["ServiceID", serviceId],
    ["DBType", dbType],
    ["NodeID", nodeId],
    ["ServiceName", serviceName],
  ];
}

/** The form of PutMetricData in the AWS query protocol, version 2010-08-01. */
function metricData(items: readonly MetricItem[], namespace: string): string {
  const form = new URLSearchParams({ Action: "PutMetricData", Version: "2010-08-01", Namespace: namespace });
  items.forEach(({ origin, metric, value, timeMs }, index) => {
    const member = `MetricData.member.${index + 1}`;
    // `append` is faster than `set`, which searches for the name first.
    form.append(`${member}.MetricName`, `platform_${metric}`);
    form.append(`${member}.Value`, String(value));
    form.append(`${member}.Timestamp`, new Date(timeMs).toISOString());
    dimensions(origin).forEach(([name, text], at) => {
      form.append(`${member}.Dimensions.member.${at + 1}.Name`, name);
      form.append(`${member}.Dimensions.member.${at + 1}.Value`, text);
    });
  });
  return form.toString();
}

function eventJson({ origin, level, message, component, role, timeMs }: LogItem): string {
  const labels = Object.fromEntries(dimensions(origin));
  return JSON.stringify({ timestamp: timeMs, message: JSON.stringify({ level, message, ...labels, component, role }) });
}

export interface CloudCall {
  readonly service: "monitoring" | "logs";
  /** Action of the logs API (JSON); calls of the query API have it in their form. */
  readonly action?: string;
  readonly body: string;
}

/** A request of CloudWatch's query API or of the JSON API of its logs, signed by Signature Version 4. */
export async function cloudRequest<I>(
  { service, action, body }: CloudCall,
  items: readonly I[],
  configuration: Configuration,
  { vendors, nowMs }: EncodeContext,
): Promise<ExportRequest<I>> {
  const region = configuredText(configuration, "region");
  const content: Record<string, string> =
    action === undefined
      ? { "content-type": "application/x-www-form-urlencoded; charset=utf-8" }
      : { "content-type": "application/x-amz-json-1.1", "x-amz-target": `Logs_20140328.${action}` };
  const signer = new AwsV4Signer({
    method: "POST",
    url: `${vendors.cloud === "" ? vendorUrl(service, region) : vendors.cloud}/`,
    headers: content,
    body,
    accessKeyId: configuredText(configuration, "access_key_id"),
    secretAccessKey: configuredText(configuration, "secret_access_key"),
    service,
    region,
    datetime: new Date(nowMs).toISOString().replaceAll(/[:-]|\.\d{3}/g, ""),
  });
  const { url, headers } = await signer.sign();
  return { method: "POST", url: url.href, headers: { ...content, ...Object.fromEntries(headers) }, body, items };
}

function vendorUrl(service: string, region: string): string {
  return `https://${service}.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
}

// biome-ignore format: a table, aligned so that it reads as one
const kinds: readonly (readonly [names: RegExp, kind: "later" | "stop" | "accepted" | "prepare" | "smaller"])[] = [
  [/^(Throttling|ThrottlingException|RequestLimitExceeded|LimitExceededException|OperationAbortedException|InternalFailure|ServiceUnavailable)/, "later"],
  [/^(ResourceNotFoundException)/, "prepare"],
  [/^(ResourceAlreadyExistsException|DataAlreadyAcceptedException)/, "accepted"],
  [/^(AccessDenied|UnrecognizedClient|InvalidSignature|SignatureDoesNotMatch|InvalidClientTokenId|InvalidAccessKeyId|MissingAuthenticationToken|ExpiredToken|IncompleteSignature|OptInRequired|AuthFailure)/, "stop"],
  [/^(RequestEntityTooLarge|RequestTooLarge)/, "smaller"],
];

/** The verdict by the error's name, which both APIs send with status 400. */
function cloudVerdict({ status, retryAfterMs, body }: DestinationResponse): Verdict {
  if (status < 400) return verdictOfStatus(status, retryAfterMs);
  const text = body.toString("utf8", 0, 8_192);
  const name = /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? /"__type"\s*:\s*"(?:[^"#]*#)?(\w+)"/.exec(text)?.[1] ?? "";
  const kind = kinds.find(([names]) => names.test(name))?.[1];
  if (kind === undefined) return verdictOfStatus(status, retryAfterMs);
  const detail =
    kind === "stop"
      ? `HTTP ${status}: the destination refuses the credential`
      : messageOf(kind === "later" ? 429 : status);
  return kind === "later" ? { kind, afterMs: retryAfterMs, detail } : kind === "accepted" ? { kind } : { kind, detail };
}
