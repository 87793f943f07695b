import { AwsV4Signer } from "aws4fetch";
import type { Configuration } from "../metrics-export.ts";
import { configuredText } from "./configured-values.ts";
import type { DestinationResponse, EncodeContext, ExportRequest } from "./destination.ts";
import { type Verdict, verdictOfStatus, messageOf } from "./verdict.ts";

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
export function cloudVerdict({ status, retryAfterMs, body }: DestinationResponse): Verdict {
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
