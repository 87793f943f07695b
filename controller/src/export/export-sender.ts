import type { Clock } from "@holdfast/common/clock.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import type { DestinationResponse, Destination, ExportRequest, VendorUrls } from "./destinations/destination.ts";
import { isWebPage, type Verdict, webPageVerdict } from "./destinations/verdict.ts";
import type { Configuration, ExportDataType } from "./metrics-export.ts";
import type { OwnServices } from "./own-services.ts";

/** The target of an integration's requests, and the organization that they are sent for. */
export interface SendTarget {
  readonly destination: Destination;
  readonly configuration: Configuration;
  readonly organizationId: string;
}

/** Sends one request by the egress client and returns the verdict on its response. */
export type SendRequest = (
  request: ExportRequest<unknown>,
  target: SendTarget,
  limits: { readonly deadlineMs: number; readonly signal: AbortSignal },
) => Promise<Verdict>;

interface Deps {
  readonly egress: { readonly users: Pick<EgressClient, "request">; readonly operators: Pick<EgressClient, "request"> };
  readonly vendors: VendorUrls;
  /** Without it no service of the installation is a destination. */
  readonly ownServices?: OwnServices;
}

const nothing = Buffer.alloc(0);
const responseBytesMax = 1 << 20;

export function createExportSender({ egress, vendors, ownServices }: Deps): SendRequest {
  return async (request, { destination, configuration, organizationId }, { deadlineMs, signal }) => {
    const { method, url, headers, body } = request;
    const isOperators = (destination.vendorBase?.(configuration, vendors) ?? "") !== "";
    const client = isOperators ? egress.operators : egress.users;
    const own = isOperators ? undefined : ownServices?.(url, organizationId);
    const unverified = configuration["tls_skip_verify"] === true ? { unverified: true } : undefined;
    const options = {
      method,
      headers,
      body,
      deadlineMs: deadlineOf(configuration, deadlineMs),
      signal,
      tls: own === undefined ? unverified : { ca: own.ca },
      addresses: own?.addresses,
      organizationId,
    };
    let response: DestinationResponse;
    try {
      const { status, retryAfterMs, bytes } = await client.request(url, { ...options, maxBytes: responseBytesMax });
      // A response body that breaks off does not change which items were accepted.
      const bytesRead = await bytes().catch((error: unknown) => {
        if (error instanceof EgressFailure) return nothing;
        throw error;
      });
      response = { status, retryAfterMs, body: bytesRead };
    } catch (error) {
      if (error instanceof EgressFailure) return verdictOfFailure(error, own !== undefined);
      throw error;
    }
    return isWebPage(response) ? webPageVerdict(response.status) : destination.interpret(response, request);
  };
}

function deadlineOf({ timeout_seconds: ownS }: Configuration, deadlineMs: number): number {
  return typeof ownS === "number" ? Math.min(ownS * 1_000, deadlineMs) : deadlineMs;
}

function verdictOfFailure({ kind, message: detail }: EgressFailure, isOwnService: boolean): Verdict {
  if (kind === "not allowed" || kind === "dns" || kind === "tls") return { kind: "stop", detail };
  const mayBeRefused = isOwnService && (kind === "connect" || kind === "timeout");
  return { kind: "later", afterMs: undefined, detail: mayBeRefused ? `${detail} ${admissionHint}` : detail };
}

/** A service closes connections from other addresses before the first byte, or never accepts them. */
const admissionHint = "Is the service running, and do its allowed_cidrs contain the addresses of the controllers?";

const probeMs = 10_000;

/**
 * Tests the destination without items, for the integration's type of data, in at most ten seconds by default.
 * Resolves to the error message; undefined on success.
 */
export type ProbeDestination = (
  target: SendTarget,
  dataType: ExportDataType,
  signal: AbortSignal,
) => Promise<string | undefined>;

export function createProbe(deps: {
  readonly send: SendRequest;
  readonly vendors: VendorUrls;
  readonly clock: Clock;
  readonly withinMs?: number;
}): ProbeDestination {
  const { send, vendors, clock, withinMs = probeMs } = deps;
  return async (target, dataType, signal) => {
    const endsAt = clock.monotonicMs() + withinMs;
    const context = { nowMs: clock.now(), vendors };
    for (const request of await target.destination.probe(target.configuration, context)) {
      if (dataType !== "both" && request.about !== undefined && request.about !== dataType) continue;
      const deadlineMs = Math.max(1, endsAt - clock.monotonicMs());
      const verdict = await send(request, target, { deadlineMs, signal });
      if (verdict.kind !== "accepted") return verdict.detail;
    }
    return undefined;
  };
}
