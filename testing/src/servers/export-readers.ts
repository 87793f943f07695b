import { uncompressSync } from "snappy";
import type { DestinationType } from "@holdfast/controller/export/metrics-export.ts";
import type { ExportArrival } from "./export-receiver.ts";
import { readWriteRequest } from "./write-request-schema.ts";

/** The parts of an item that identify it at a destination. */
export interface ReadItem {
  readonly name: string;
  readonly value: number | string;
  readonly timeMs: number;
  readonly serviceId: string;
  readonly nodeId: string;
  /** Scope of its order, where that is less than the node's metric or log. */
  readonly stream?: string;
}

type Json = Readonly<Record<string, unknown>>;

/**
 * Parses requests of one type strictly, as its destination would: throws for a request that the destination would
 * reject.
 */
export interface ExportReader {
  readonly configuration: (url: string) => Record<string, unknown>;
  /** Items of a request; undefined for a request without items. */
  read(arrival: ExportArrival): readonly ReadItem[] | undefined;
  /** The response to an accepted request. */
  acceptance(arrival: ExportArrival): { readonly status: number; readonly body?: string };
  /** The secret as in the request's headers. */
  readonly secret: string;
}

const secret = "planted-export-secret-1234567890";
const jsonOf = ({ body }: ExportArrival) => JSON.parse(body.toString("utf8")) as Json;

function must(condition: boolean, what: string): void {
  if (!condition) throw new Error(`a request without ${what}`);
}

function keysAre(object: object, ...keys: readonly string[]): void {
  const actual = Object.keys(object).toSorted();
  must(actual.join() === keys.toSorted().join(), `exactly ${keys.join()}: it has ${actual.join()}`);
}

const prometheusRemoteWrite: ExportReader = {
  secret,
  configuration: (url) => ({ url: `${url}/api/v1/write`, bearer_token: secret }),
  acceptance: () => ({ status: 204 }),
  read({ path, headers, body }) {
    must(path === "/api/v1/write", "its path");
    must(headers["x-prometheus-remote-write-version"] === "0.1.0", "its version");
    must(headers["content-encoding"] === "snappy", "snappy");
    must(headers["content-type"] === "application/x-protobuf", "its type");
    must(headers.authorization === `Bearer ${secret}`, "its credential");
    return readWriteRequest(uncompressSync(body) as Buffer).flatMap(({ labels, samples }) => {
      const names = labels.map(({ name }) => name);
      must(names.join() === [...new Set(names)].toSorted().join(), "sorted, unique labels");
      const of = Object.fromEntries(labels.map(({ name, value }) => [name, value]));
      keysAre(of, "__name__", "db_type", "node_id", "service_id", "service_name");
      return samples.map(({ value, timestamp }) => ({
        name: (of["__name__"] ?? "").replace(/^platform_/, ""),
        value,
        timeMs: Number(timestamp),
        serviceId: of["service_id"] ?? "",
        nodeId: of["node_id"] ?? "",
      }));
    });
  },
};

interface OtlpValue {
  readonly key: string;
  readonly value: { readonly stringValue: string };
}
interface OtlpPoint {
  readonly timeUnixNano: string;
  readonly asDouble: number;
}
interface OtlpResource {
  readonly resource: { readonly attributes: readonly OtlpValue[] };
  readonly scopeMetrics?: readonly {
    readonly metrics: readonly {
      readonly name: string;
      readonly gauge: { readonly dataPoints: readonly OtlpPoint[] };
    }[];
  }[];
  readonly scopeLogs?: readonly {
    readonly logRecords: readonly {
      readonly timeUnixNano: string;
      readonly severityNumber: number;
      readonly body: { readonly stringValue: string };
    }[];
  }[];
}

const otlp: ExportReader = {
  secret,
  configuration: (url) => ({ endpoint: url, insecure: true, headers: { "X-Api-Key": secret }, protocol: "http" }),
  acceptance: () => ({ status: 200, body: "{}" }),
  read(arrival) {
    const { path, headers } = arrival;
    must(path === "/v1/metrics" || path === "/v1/logs", "its path");
    must(headers["content-type"] === "application/json", "its type");
    must(headers["x-api-key"] === secret, "its header");
    const json = jsonOf(arrival);
    keysAre(json, path === "/v1/metrics" ? "resourceMetrics" : "resourceLogs");
    const resources = (json["resourceMetrics"] ?? json["resourceLogs"]) as readonly OtlpResource[];
    return resources.flatMap(({ resource, scopeMetrics = [], scopeLogs = [] }) => {
      const of = Object.fromEntries(resource.attributes.map(({ key, value }) => [key, value.stringValue]));
      keysAre(
        of,
        "service.name",
        "platform.service_id",
        "platform.node_id",
        "platform.db_type",
        "platform.service_name",
      );
      const origin = { serviceId: of["platform.service_id"] ?? "", nodeId: of["platform.node_id"] ?? "" };
      const timeOf = (nanos: unknown) => {
        must(typeof nanos === "string" && /^\d{19}$/.test(nanos), "int64 as text");
        return Number(String(nanos).slice(0, -6));
      };
      const points = scopeMetrics.flatMap(({ metrics }) =>
        metrics.flatMap(({ name, gauge }) =>
          gauge.dataPoints.map(({ timeUnixNano, asDouble }) => ({
            name: name.replace(/^platform\./, ""),
            value: asDouble,
            timeMs: timeOf(timeUnixNano),
            ...origin,
          })),
        ),
      );
      const records = scopeLogs.flatMap(({ logRecords }) =>
        logRecords.map(({ timeUnixNano, severityNumber, body }) => {
          must([5, 9, 13, 17].includes(severityNumber), "a severity");
          return { name: "log", value: body.stringValue, timeMs: timeOf(timeUnixNano), ...origin };
        }),
      );
      return [...points, ...records];
    });
  },
};

const searchCluster: ExportReader = {
  secret,
  configuration: (url) => ({ endpoint: url, username: "u", password: secret }),
  acceptance: (arrival) =>
    arrival.method === "GET"
      ? { status: 200, body: "{}" }
      : { status: 200, body: JSON.stringify({ errors: false, items: [] }) },
  read({ method, path, headers, body }) {
    must(headers.authorization === `Basic ${Buffer.from(`u:${secret}`).toString("base64")}`, "its credential");
    if (method === "GET") return undefined;
    must(path === "/_bulk" && headers["content-type"] === "application/x-ndjson", "its path and type");
    const text = body.toString("utf8");
    must(text.endsWith("\n"), "a line end");
    const lines = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Json);
    return lines.flatMap((document, index) => {
      if (index % 2 === 0) return [];
      const { create } = lines[index - 1] as { create: { _index: string; _id: string } };
      must(/^platform-platform-(metrics|logs)$/.test(create._index) && create._id.length === 32, "index and id");
      const tags = document["tags"] as Readonly<Record<string, string>>;
      keysAre(tags, "service_id", "db_type", "node_id", "service_name");
      return [
        {
          name: ((document["metric"] ?? "log") as string).replace(/^platform_/, ""),
          value: (document["value"] ?? document["message"]) as number | string,
          timeMs: Date.parse(String(document["@timestamp"])),
          serviceId: tags["service_id"] ?? "",
          nodeId: tags["node_id"] ?? "",
        },
      ];
    });
  },
};

const logAggregator: ExportReader = {
  secret,
  configuration: (url) => ({ endpoint: url, bearer_token: secret, labels: { team: "core" } }),
  acceptance: () => ({ status: 204 }),
  read(arrival) {
    must(arrival.path === "/loki/api/v1/push", "its path");
    must(arrival.headers.authorization === `Bearer ${secret}`, "its credential");
    const { streams } = jsonOf(arrival) as {
      streams: { stream: Record<string, string>; values: [string, string][] }[];
    };
    return streams.flatMap(({ stream: labels, values }) => {
      keysAre(labels, "team", "service_id", "db_type", "level");
      const times = values.map(([nanos]) => nanos);
      must(times.join() === times.toSorted().join(), "times in order");
      return values.map(([nanos, line]) => {
        must(/^\d{19}$/.test(nanos), "nanoseconds as text");
        const { message, node_id: nodeId } = JSON.parse(line) as Record<string, string>;
        const timeMs = Number(nanos.slice(0, -6));
        const { service_id: serviceId = "", level: stream = "" } = labels;
        return { name: "log", value: message ?? "", timeMs, serviceId, nodeId: nodeId ?? "", stream };
      });
    });
  },
};

function logsInArray(entries: readonly Json[], names: { time: string; node: string; service?: string }): ReadItem[] {
  return entries.map((entry) => ({
    name: "log",
    value: String(entry["message"]),
    timeMs: new Date(entry[names.time] as string | number).getTime(),
    serviceId: String(entry[names.service ?? "service_id"]),
    nodeId: String(entry[names.node]),
  }));
}

const logSaas: ExportReader = {
  secret,
  configuration: (url) => ({ endpoint: `${url}/in`, source_token: secret }),
  acceptance: () => ({ status: 202 }),
  read(arrival) {
    must(arrival.path === "/in" && arrival.headers.authorization === `Bearer ${secret}`, "path and credential");
    const entries = JSON.parse(arrival.body.toString("utf8")) as Json[];
    must(Array.isArray(entries), "an array");
    return logsInArray(entries, { time: "dt", node: "node_id" });
  },
};

const apmPlatform: ExportReader = {
  secret,
  configuration: () => ({ api_key: secret, tags: { team: "core" } }),
  acceptance: () => ({ status: 202, body: "{}" }),
  read(arrival) {
    must(arrival.headers["dd-api-key"] === secret, "its key");
    if (arrival.path === "/api/v1/validate") return undefined;
    const tagsOf = (list: readonly string[]) =>
      Object.fromEntries(list.map((tag) => [tag.slice(0, tag.indexOf(":")), tag.slice(tag.indexOf(":") + 1)]));
    if (arrival.path === "/api/v2/logs") {
      const entries = JSON.parse(arrival.body.toString("utf8")) as Json[];
      must(entries.length <= 1_000, "a thousand at most");
      const named = entries.map((each) => ({ ...each, ...tagsOf(String(each["ddtags"]).split(",")) }));
      return logsInArray(named, { time: "timestamp", node: "hostname" });
    }
    must(arrival.path === "/api/v2/series", "its path");
    const { series } = jsonOf(arrival) as {
      series: { metric: string; type: number; points: { timestamp: number; value: number }[]; tags: string[] }[];
    };
    return series.flatMap(({ metric, type, points, tags }) => {
      must(type === 3, "a gauge");
      const of = tagsOf(tags);
      keysAre(of, "team", "db_type", "node_id", "service_id", "service_name");
      return points.map(({ timestamp, value }) => ({
        name: metric.replace(/^platform\./, ""),
        value,
        timeMs: timestamp * 1_000,
        serviceId: of["service_id"] ?? "",
        nodeId: of["node_id"] ?? "",
      }));
    });
  },
};

const cloudMonitoring: ExportReader = {
  secret: `Credential=${"A".repeat(20)}`,
  configuration: () => ({ region: "eu-west-1", access_key_id: "A".repeat(20), secret_access_key: secret }),
  acceptance: () => ({ status: 200, body: "{}" }),
  read({ headers, body }) {
    must(
      /^AWS4-HMAC-SHA256 Credential=A{20}\/\d{8}\/eu-west-1\/(monitoring|logs)\//.test(headers.authorization ?? ""),
      "its signature",
    );
    const target = headers["x-amz-target"];
    if (target === "Logs_20140328.PutLogEvents") {
      const { logGroupName, logStreamName, logEvents } = JSON.parse(body.toString("utf8")) as {
        logGroupName: string;
        logStreamName: string;
        logEvents: { timestamp: number; message: string }[];
      };
      must(logGroupName === "/platform/logs" && /^platform-\d{4}-\d\d-\d\d$/.test(logStreamName), "group and stream");
      return logEvents.map(({ timestamp, message }) => {
        const { message: value, ServiceID, NodeID } = JSON.parse(message) as Record<string, string>;
        return { name: "log", value: value ?? "", timeMs: timestamp, serviceId: ServiceID ?? "", nodeId: NodeID ?? "" };
      });
    }
    const form = new URLSearchParams(body.toString("utf8"));
    if (form.get("Action") !== "PutMetricData") return undefined;
    must(form.get("Namespace") === "Platform", "its namespace");
    const items: ReadItem[] = [];
    for (let n = 1; form.has(`MetricData.member.${n}.MetricName`); n += 1) {
      const of = (name: string) => form.get(`MetricData.member.${n}.${name}`) ?? "";
      const dimensions = Object.fromEntries(
        [1, 2, 3, 4].map((place) => [of(`Dimensions.member.${place}.Name`), of(`Dimensions.member.${place}.Value`)]),
      );
      keysAre(dimensions, "ServiceID", "DBType", "NodeID", "ServiceName");
      items.push({
        name: of("MetricName").replace(/^platform_/, ""),
        value: Number(of("Value")),
        timeMs: Date.parse(of("Timestamp")),
        serviceId: dimensions["ServiceID"] ?? "",
        nodeId: dimensions["NodeID"] ?? "",
      });
    }
    must(items.length <= 1_000, "a thousand at most");
    return items;
  },
};

export const exportReaders: Readonly<Record<DestinationType, ExportReader>> = {
  apm_platform: apmPlatform,
  prometheus_remote_write: prometheusRemoteWrite,
  otlp,
  search_cluster: searchCluster,
  log_aggregator: logAggregator,
  log_saas: logSaas,
  cloud_monitoring: cloudMonitoring,
};
