import type { Field } from "../configuration/field.ts";
import type { LogItem, MetricItem } from "../export-item.ts";
import type { Configuration, DestinationType } from "../metrics-export.ts";
import type { Verdict } from "./verdict.ts";

/**
 * A type of destination: how it is configured, how it is asked without data, how items become requests, and what its
 * answers mean. A facet that it lacks is absent. It opens no connection itself.
 */
export interface Destination {
  readonly type: DestinationType;
  /** Its keys of `configuration`, by name. */
  readonly fields: Readonly<Record<string, Field>>;
  /** What fields cannot say alone, such as pairs that exclude each other. Secrets are there, or their mask. */
  check?(configuration: Configuration): readonly ConfigurationFault[];
  /** What works otherwise than a user may think. */
  warnings?(configuration: Configuration): readonly string[];
  /** Requests that change nothing and have no data; all have to be accepted. */
  probe(configuration: Configuration, context: EncodeContext): Promise<readonly ProbeRequest[]>;
  /** Base URL that operators set and this configuration leads to: undefined where it leads elsewhere, empty where none is set. */
  vendorBase?(configuration: Configuration, vendors: VendorUrls): string | undefined;
  readonly metrics?: Encoder<MetricItem>;
  readonly logs?: Encoder<LogItem>;
  /** What an answer to one of its requests means. */
  judge(answer: Answer, request: ExportRequest<unknown>): Verdict;
}

export interface Encoder<I> {
  /** Items that are older are not sent. */
  readonly oldestMs?: number;
  /** Requests with all items, in order; each within what the destination takes at most. */
  encode(
    items: readonly I[],
    configuration: Configuration,
    context: EncodeContext,
  ): Promise<readonly ExportRequest<I>[]>;
}

/** What is not the user's to say. */
export interface EncodeContext {
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly vendors: VendorUrls;
}

/** Base URLs of vendors, which operators can set; empty for the vendor's own, or for none. */
export interface VendorUrls {
  readonly apm: string;
  readonly logSaas: string;
  readonly cloud: string;
}

export interface ExportRequest<I> {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** What is in the body, in its order. */
  readonly items: readonly I[];
  /** Makes what the request needs at the destination, where that may be missing; sent in order. */
  needs?(): Promise<readonly ExportRequest<never>[]>;
}

export interface ProbeRequest extends ExportRequest<never> {
  /** What it asks about, where that is one of both: an integration without it does not ask. */
  readonly about?: "metrics" | "logs";
}

export interface Answer {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  /** At most 1 MiB. */
  readonly body: Buffer;
}

export interface ConfigurationFault {
  readonly key: string;
  readonly code: string;
  readonly detail: string;
}
