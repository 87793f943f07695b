import type { Field } from "../configuration/field.ts";
import type { LogItem, MetricItem } from "../export-item.ts";
import type { Configuration, DestinationType } from "../metrics-export.ts";
import type { Verdict } from "./verdict.ts";

/**
 * A type of destination: its configuration, its probe, the encoding of items into requests, and the meaning of
 * responses. A destination without metrics or logs lacks that encoder. It opens no connection itself.
 */
export interface Destination {
  readonly type: DestinationType;
  /** The keys of its configuration. */
  readonly fields: Readonly<Record<string, Field>>;
  /** Faults that involve several keys, such as pairs that exclude each other. Secrets are present, or their masks. */
  check?(configuration: Configuration): readonly ConfigurationFault[];
  /** Warnings about settings that work differently than users may expect. */
  warnings?(configuration: Configuration): readonly string[];
  /** Requests without data that test URL and credentials; all have to be accepted. */
  probe(configuration: Configuration, context: EncodeContext): Promise<readonly ProbeRequest[]>;
  /**
   * The operators' base URL that this configuration uses: undefined where it has a URL of its own, empty where
   * operators set none.
   */
  vendorBase?(configuration: Configuration, vendors: VendorUrls): string | undefined;
  readonly metrics?: Encoder<MetricItem>;
  readonly logs?: Encoder<LogItem>;
  /** The verdict on a response to one of its requests. */
  interpret(answer: Answer, request: ExportRequest<unknown>): Verdict;
}

export interface Encoder<I> {
  /** Maximum age of items; older ones are not sent. */
  readonly oldestMs?: number;
  /** Encodes all items into requests, in order, each within the limits of the destination. */
  encode(
    items: readonly I[],
    configuration: Configuration,
    context: EncodeContext,
  ): Promise<readonly ExportRequest<I>[]>;
}

/** Values that do not come from the configuration. */
export interface EncodeContext {
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly vendors: VendorUrls;
}

/** Base URLs of vendors that operators can override; empty: the vendor's own URL, or none. */
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
  /** The items in the body, in order. */
  readonly items: readonly I[];
  /** Requests that create what this request needs at the destination, in order; sent when it is missing. */
  needs?(): Promise<readonly ExportRequest<never>[]>;
}

export interface ProbeRequest extends ExportRequest<never> {
  /** The type of data that it tests, if it is one only; an integration without that type skips it. */
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
