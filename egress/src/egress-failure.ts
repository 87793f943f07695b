/**
 * A failed request on behalf of a user. The detail is for that user and reveals nothing about the platform's network.
 */
export class EgressFailure extends Error {
  override readonly name = "EgressFailure";
  readonly kind: "not allowed" | "dns" | "connect" | "tls" | "timeout" | "protocol" | "too large";

  constructor(kind: EgressFailure["kind"], detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.kind = kind;
  }

  /** Converts a failure of the HTTP client into one of the kinds above. */
  static from(error: unknown): EgressFailure {
    if (error instanceof EgressFailure) return error;
    const code = codeOf(error);
    const options = { cause: error };
    if (code === "ECONNREFUSED") return new EgressFailure("connect", "The connection was refused.", options);
    if (code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT")
      return new EgressFailure("timeout", "The connection could not be made in time.", options);
    if (/^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|EPROTO|HOSTNAME_MISMATCH|INVALID_CA)/.test(code))
      return new EgressFailure("tls", `The TLS handshake failed: ${code}.`, options);
    if (/^(HPE_|UND_ERR_HEADERS|UND_ERR_RES|UND_ERR_RESPONSE)/.test(code))
      return new EgressFailure("protocol", "The response is not valid HTTP.", options);
    return new EgressFailure("connect", "The connection broke.", options);
  }
}

/** The code of the error or its cause; for an AggregateError, the code of its first error. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  if (!(error instanceof Error)) return "";
  if ("code" in error && typeof error.code === "string") return error.code;
  return codeOf(error.cause);
}
