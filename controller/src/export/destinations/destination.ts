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
  /** Requests without items that test URL and credentials; the test succeeds if all are accepted. */
  probe(configuration: Configuration, context: EncodeContext): Promise<readonly ProbeRequest[]>;
  /**
   * Base URL from the settings of operators; empty if they set none. Undefined if the configuration has a URL, or if
   * the vendor's public URL is used.
   */
  vendorBase?(configuration: Configuration, vendors: VendorUrls): string | undefined;
  readonly metrics?: Encoder<MetricItem>;
  readonly logs?: Encoder<LogItem>;
  /** The verdict on a response to one of its requests. */
  interpret(response: DestinationResponse, request: ExportRequest<unknown>): Verdict;
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

/** Input of encoders besides items and configuration. */
export interface EncodeContext {
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly vendors: VendorUrls;
}

/** Base URLs from operators' settings; an empty one selects the vendor's public URL, if the vendor has one. */
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
  /** Requests that create the prerequisites of this request, in order; sent after the verdict `prepare`. */
  needs?(): Promise<readonly ExportRequest<never>[]>;
}

export interface ProbeRequest extends ExportRequest<never> {
  /** The type of data that the request tests; integrations without that type skip it. Undefined: both types. */
  readonly about?: "metrics" | "logs";
}

export interface DestinationResponse {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  /** The first 1 MiB at most. */
  readonly body: Buffer;
}

export interface ConfigurationFault {
  readonly key: string;
  readonly code: string;
  readonly detail: string;
}
